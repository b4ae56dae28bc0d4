// How memory fares: of the machine (/proc/vmstat, /proc/meminfo, /proc/swaps; proc(5)) and of a control group that has
// a limit (memory.stat and what lies beside it; cgroup-v1/memory.rst, cgroup-v2.rst).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace swapd::sys {

// Since boot, or since the group was made.
struct MemoryCounters {
  std::uint64_t refaults = 0;  // anonymous pages that came back not long after they had been swapped out
  std::uint64_t in = 0, out = 0;
  // Never below zero.
  friend MemoryCounters operator-(const MemoryCounters& a, const MemoryCounters& b) {
    const auto less = [](std::uint64_t from, std::uint64_t what) { return from > what ? from - what : 0; };
    return {.refaults = less(a.refaults, b.refaults), .in = less(a.in, b.in), .out = less(a.out, b.out)};
  }
};

struct MemoryState {
  MemoryCounters counters;      // pages
  std::int64_t room = 0;        // bytes that can be had without swapping
  std::int64_t limit = 0;       // bytes that there can be in all
  std::int64_t swap_room = 0;   // bytes that can be swapped out still
  std::int64_t swap_total = 0;  // bytes of swap; of a group those that it may use
};

class MemoryStat {
 public:
  // roots: in tests others.
  explicit MemoryStat(std::string proc_root = "/proc", std::string cgroups = "/sys/fs/cgroup")
      : proc_root_(std::move(proc_root)), cgroups_(std::move(cgroups)) {}

  [[nodiscard]] Result<MemoryState> machine() const;
  // group: by its path in the memory controller ("/ct"); `machine` as of now. Nothing: it is not there, or has no
  // limit below what the machine has.
  [[nodiscard]] std::optional<MemoryState> group(const std::string& group, const MemoryState& machine) const;
  // The group of a process; empty: the root, or there is no such controller.
  [[nodiscard]] std::string group_of(pid_t tgid) const;
  // About what it takes to bring back a page: from compressed memory if all of swap is that, else from a disk.
  [[nodiscard]] Duration page_cost() const;

 private:
  std::string proc_root_, cgroups_;
};

// Pages that move because a group is at its limit count for that group, and for none that it is in. By path; the
// machine's is empty.
void leave_to_groups_within(const std::map<std::string, MemoryState>& groups,
                            std::map<std::string, MemoryCounters>& moved);

namespace parse {
// The number behind "key " or "key:", in bytes where it says kB.
[[nodiscard]] std::optional<std::int64_t> number_of(std::string_view text, std::string_view key);
// The path of the memory controller's group in /proc/PID/cgroup: v1's where that has it, else v2's.
struct MemoryGroup {
  bool v1 = false;
  std::string path;
};
[[nodiscard]] std::optional<MemoryGroup> memory_group(std::string_view text);
// True if each line of /proc/swaps below the first names a zram device, and there is one.
[[nodiscard]] bool all_compressed(std::string_view swaps);
}  // namespace parse

}  // namespace swapd::sys
