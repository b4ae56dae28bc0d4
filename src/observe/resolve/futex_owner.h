// futex(2) waits: which futex, and who holds it where its memory tells.
#pragma once

#include <linux/futex.h>

#include <optional>
#include <vector>

#include "base/resource.h"
#include "observe/resolve/process_ids.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

enum class FutexOp : std::uint8_t { none, wait, lock_pi };

// The operation that the argument of futex(2) asks for, flags aside.
[[nodiscard]] FutexOp futex_op(std::uint64_t op);
[[nodiscard]] inline bool futex_private(std::uint64_t op) { return (op & FUTEX_PRIVATE_FLAG) != 0; }

// private: the process and the address. A process whose start time is 0 is looked up. Empty: it is gone.
[[nodiscard]] std::optional<Resource> private_futex(const sys::Procfs& procfs, ThreadId process, std::uint64_t address);
// Without the private flag the mapping decides: shared memory is named by its file, all else as a private futex.
[[nodiscard]] std::optional<Resource> shared_futex(const sys::Procfs& procfs, pid_t tgid, std::uint64_t address);

// Ids, as the waiter's namespace has them, that the lock may name as its owner; candidates, not yet verified. Pure.
// `word` and `owner_field` are the ints at the futex and 8 bytes on (glibc pthread_mutex_t: __lock and __owner);
// `expected` is the value the waiter passed.
struct FutexWords {
  std::uint32_t word = 0;
  std::uint32_t owner_field = 0;
  std::uint32_t expected = 0;
};
[[nodiscard]] std::vector<pid_t> owner_candidates(FutexOp op, const FutexWords& words);

// The owners, verified: for a private futex threads of the same process, other than the waiter.
[[nodiscard]] std::vector<pid_t> futex_owners(const sys::Procfs& procfs, const ProcessIds& ids, pid_t waiter,
                                              pid_t tgid, FutexOp op, std::uint64_t address, std::uint64_t expected,
                                              bool shared);

}  // namespace swapd::observe
