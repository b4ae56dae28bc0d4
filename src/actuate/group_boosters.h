// Boosts of a thread's groups: those that share the CPU, and those that share disks, by each kind of weights that there
// is. Internal to actuate/.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actuate/group_booster.h"

namespace swapd::actuate {

class GroupBoosters {
 public:
  GroupBoosters(const sys::Groups& cpu, std::span<const DiskGroups> disks, bool dry_run);
  // Null: none is kept.
  void set_journal(Journal* journal);
  void set_competitors(Competitors competitors);
  [[nodiscard]] const std::optional<Competitors>& competitors() const { return cpu_.competitors(); }

  // The thread has `set`: its groups get what goes with it, as far as that is allowed. The answer is why this falls
  // short, or none.
  [[nodiscard]] Ineffective lend(ThreadId thread, const SchedAttr& set, bool allowed, Time now);
  // See GroupBooster; of the groups that share the CPU. The others have what is theirs.
  void lower(ThreadId thread, Time now);
  void take_back(ThreadId thread);
  void forget(ThreadId thread);  // its places, too

  // See GroupBooster; of the groups that share the CPU.
  [[nodiscard]] Ineffective halted(ThreadId thread) const { return cpu_.halted(thread); }
  [[nodiscard]] bool lacks_realtime(ThreadId thread, Time now) { return cpu_.lacks_realtime(thread, now); }
  [[nodiscard]] std::optional<std::uint64_t> own_weight(const std::string& group, std::uint64_t since) const {
    return cpu_.own_weight(group, since);
  }
  [[nodiscard]] std::uint64_t changes() const { return cpu_.changes(); }

 private:
  GroupBooster cpu_;
  std::vector<GroupBooster> disks_;
};

}  // namespace swapd::actuate
