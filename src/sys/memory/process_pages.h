// The anonymous memory of another process: how much of it there is, and taking it to swap and back
// (process_madvise(2), process_vm_readv(2); proc(5), smaps, pagemap). Step by step, so that a change of mind can stop
// it. The process should stand still meanwhile: else it brings back what it uses.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::sys {

struct AnonymousSize {
  std::int64_t resident = 0, swapped = 0;  // bytes
};
// From /proc/PID/status: cheap, and right to within some pages a thread.
[[nodiscard]] Result<AnonymousSize> anonymous_size(pid_t tgid);

struct MemoryRange {
  std::uint64_t begin = 0, end = 0;        // addresses
  std::int64_t resident = 0, swapped = 0;  // bytes
};

class ProcessPages {
 public:
  static constexpr std::uint64_t step = std::uint64_t{16} << 20;  // bytes of addresses at once, at most

  // ESRCH: it is gone. EPERM: the capabilities CAP_SYS_NICE and CAP_SYS_PTRACE are missing.
  [[nodiscard]] static Result<ProcessPages> open(pid_t tgid);

  // One step of what is in memory now goes to swap. True: there is more.
  [[nodiscard]] Result<bool> put_out();
  // One step of what is in swap comes back: it is read first, and then mapped, so that the kernel does not take it for
  // unused. True: there is more.
  [[nodiscard]] Result<bool> bring_back();
  // Looks anew at what there is; the next step is the first again.
  [[nodiscard]] Status look();

 private:
  ProcessPages(pid_t tgid, Fd pidfd, Fd pagemap)
      : tgid_(tgid), pidfd_(std::move(pidfd)), pagemap_(std::move(pagemap)) {}
  [[nodiscard]] std::optional<MemoryRange> next(std::int64_t MemoryRange::*what);
  [[nodiscard]] Status advise(const MemoryRange& range, int advice) const;
  [[nodiscard]] Status touch_swapped(const MemoryRange& range) const;

  pid_t tgid_;
  Fd pidfd_, pagemap_;
  std::vector<MemoryRange> ranges_;
  std::size_t at_ = 0;
};

namespace parse {
// The private, writable mappings in the text of /proc/PID/smaps that have or had pages of their own.
[[nodiscard]] std::vector<MemoryRange> anonymous_ranges(std::string_view smaps);
}  // namespace parse

}  // namespace swapd::sys
