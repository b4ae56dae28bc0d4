#include "observe/resolve/futex_owner.h"

#include <algorithm>
#include <array>

namespace swapd::observe {

FutexOp futex_op(std::uint64_t op) {
  switch (op & FUTEX_CMD_MASK & 0xffffffffU) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
      return FutexOp::wait;
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
      return FutexOp::lock_pi;
    default:
      return FutexOp::none;
  }
}

std::optional<Resource> private_futex(const sys::Procfs& procfs, ThreadId process, std::uint64_t address) {
  if (process.start_time != 0) return futex_of(process, address);
  const auto found = procfs.thread_id(process.tid);
  if (!found) return std::nullopt;
  return futex_of(*found, address);
}

std::optional<Resource> shared_futex(const sys::Procfs& procfs, pid_t tgid, std::uint64_t address) {
  const auto mapping = procfs.mapping(tgid, address);
  if (!mapping) return std::nullopt;
  if (!mapping->shared || mapping->ino == 0) return private_futex(procfs, {.tid = tgid}, address);
  return futex_in({mapping->dev, mapping->ino}, address - mapping->start + mapping->offset);
}

std::vector<pid_t> owner_candidates(FutexOp op, const FutexWords& words) {
  const auto owner = static_cast<pid_t>(words.word & FUTEX_TID_MASK);
  if (op == FutexOp::lock_pi) return owner > 0 ? std::vector{owner} : std::vector<pid_t>{};
  std::vector<pid_t> out;
  // A normal mutex that is waited for: the word is 2, and the owner stands 8 bytes on.
  if (words.word == 2 && words.owner_field != 0 && words.owner_field <= FUTEX_TID_MASK)
    out.push_back(static_cast<pid_t>(words.owner_field));
  // A robust mutex has the owner in the word, with the waiters bit; pthread_join waits on the id of the thread.
  const bool robust = (words.word & FUTEX_WAITERS) != 0;
  if (owner > 2 && words.word == words.expected && (robust || words.word <= FUTEX_TID_MASK)) out.push_back(owner);
  return out;
}

std::vector<pid_t> futex_owners(const sys::Procfs& procfs, const ProcessIds& ids, pid_t waiter, pid_t tgid, FutexOp op,
                                std::uint64_t address, std::uint64_t expected, bool shared) {
  std::array<std::uint32_t, 3> memory{};
  if (!sys::Procfs::read_memory(waiter, address, memory.data(), sizeof memory) &&
      !sys::Procfs::read_memory(waiter, address, memory.data(), sizeof(std::uint32_t)))
    return {};
  const auto candidates = owner_candidates(
      op, {.word = memory[0], .owner_field = memory[2], .expected = static_cast<std::uint32_t>(expected)});
  if (candidates.empty()) return {};
  const auto own = procfs.threads(tgid).value_or({});
  const bool same = ids.same_namespace(waiter);
  std::vector<pid_t> out;
  for (const pid_t id : candidates) {
    // Any thread's word may look like an id by chance: within a process it must be one of its threads. A process-shared
    // lock may be held by any process, whose ids can only be looked up in our own namespace.
    std::optional<pid_t> owner = same ? std::optional(id) : ids.ours(waiter, id, own);
    if (!owner || *owner == waiter) continue;
    const bool mine = std::find(own.begin(), own.end(), *owner) != own.end();
    if (mine || (shared && same && procfs.stat(*owner))) out.push_back(*owner);
  }
  return out;
}

}  // namespace swapd::observe
