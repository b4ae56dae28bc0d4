// Memory that is too small: a control group with a limit, swap for what does not fit, and programs that use more than
// there is. All of it is gone again at the end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "harness/process.h"

namespace swapd::bench {

// Behind a policy: what matters keeps its memory.
inline constexpr const char* with_memory = "\n[memory]\non = true\n";

// A group of the memory controller, v1 or v2, with a limit. Its processes are put into the group above at the end.
class MemoryGroup {
 public:
  [[nodiscard]] static Result<std::unique_ptr<MemoryGroup>> make(std::int64_t bytes);
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  [[nodiscard]] Status take(pid_t pid) const;
  // Processes that the kernel has killed for want of memory.
  [[nodiscard]] std::uint64_t killed() const;

 private:
  MemoryGroup() = default;
  std::string parent_, directory_;
};

// Swap on compressed memory ("zram") or in a file ("file", in `dir`). ENODEV: there is no zram.
class SwapSpace {
 public:
  [[nodiscard]] static Result<std::unique_ptr<SwapSpace>> make(const std::string& kind, std::int64_t bytes,
                                                               const std::string& dir);
  ~SwapSpace();
  SwapSpace(const SwapSpace&) = delete;
  SwapSpace& operator=(const SwapSpace&) = delete;

 private:
  SwapSpace() = default;
  Status make_zram(std::int64_t bytes);
  Status make_file(std::int64_t bytes, const std::string& dir);
  std::string path_;
  bool zram_ = false, on_ = false;
};

// Pages of /proc/vmstat's name since boot.
[[nodiscard]] std::uint64_t vmstat(const std::string& name);

// Work that processes with memory do together; then they end. None: they never do.
struct MemoryLoads {
  std::uint64_t count = 0;
  std::uint64_t pages = 0;  // touched for one
};

// Processes that touch their memory, page after page, again and again, each in a process group of its own.
class MemoryHogs {
 public:
  // In `group` before they have any memory. bytes: of each.
  [[nodiscard]] static Result<std::unique_ptr<MemoryHogs>> start(int count, std::int64_t bytes,
                                                                 const MemoryGroup& group, const std::vector<int>& cpus,
                                                                 MemoryLoads loads = {});
  ~MemoryHogs();
  MemoryHogs(const MemoryHogs&) = delete;
  MemoryHogs& operator=(const MemoryHogs&) = delete;
  [[nodiscard]] const std::vector<Child>& children() const { return children_; }
  [[nodiscard]] std::vector<Child>& children() { return children_; }
  // That each has touched so far, all rounds together.
  [[nodiscard]] std::vector<std::uint64_t> touched() const;

 private:
  MemoryHogs() = default;
  std::vector<Child> children_;
  std::uint64_t* counts_ = nullptr;  // shared with them; behind the last one's the loads that were taken
  std::size_t count_ = 0;
};

}  // namespace swapd::bench
