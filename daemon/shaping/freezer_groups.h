// The cgroups in which processes are frozen (mmap_throttler.h), each below the group that its process is in. What is
// frozen stands in the memory of the guard, which ends it where swapd looks no more; the groups that exist stand in
// a file of the state directory, for the next swapd. One thread.
#pragma once

#include <sys/types.h>

#include <future>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/guard_memory.h"
#include "base/result.h"
#include "base/time.h"
#include "sys/sched/freezer_group.h"

namespace swapd::daemon {

class FreezerGroups {
 public:
  struct Places {
    std::string proc_root = "/proc", cgroups = "/sys/fs/cgroup";
    std::string state_dir{};      // empty: nothing is written down
    std::string file = "frozen";  // in there
  };
  FreezerGroups(std::span<FrozenGroup> memory, Places places);
  ~FreezerGroups();  // thaws every process, and moves each back to its group
  FreezerGroups(const FreezerGroups&) = delete;
  FreezerGroups& operator=(const FreezerGroups&) = delete;

  // The groups that a swapd before has left.
  static void clear_left(const std::string& state_dir);

  [[nodiscard]] bool is_full() const { return free_.empty(); }  // no more can be frozen
  // Alone in a group of its own. False: not yet. Another thread puts one process at a time there, because that takes
  // the kernel a grace period of RCU (7 to 50 ms, more on a busy machine) unless it has moved one just before. EBUSY:
  // it has made groups below its own. Else as FreezerGroup::make().
  [[nodiscard]] Result<bool> enter(pid_t tgid, Time now);
  // One that is in its group, unless they are full; the guard ends it unless vouch() renews it before `until`. False:
  // it has done so already. Nothing is frozen where this fails.
  [[nodiscard]] Result<bool> freeze(pid_t tgid, Time until);
  [[nodiscard]] bool is_frozen(pid_t tgid) const;
  // False: the guard has ended it meanwhile.
  [[nodiscard]] bool vouch(pid_t tgid, Time until);
  // Still frozen where the kernel refuses.
  void thaw(pid_t tgid);
  // Only it is in its group. False: it is not (another program has moved it).
  [[nodiscard]] bool keep(pid_t tgid) const;
  // Thawed, and back in the group above.
  void leave(pid_t tgid, Time now);
  // Once a round: takes a group that is there by now, and removes what could not be removed before.
  void tidy(Time now);

 private:
  struct Own {
    sys::FreezerGroup group;
    std::optional<std::size_t> place;  // in the guard's memory, while it is frozen
  };
  struct Leaving {  // could not be removed yet
    Own own;
    Time next{};
    Duration pause{};
  };

  struct Entering {  // a process is being put into its group
    pid_t tgid = 0;
    std::string directory;
    std::future<Result<sys::FreezerGroup>> made;
    bool is_to_leave = false;
  };

  [[nodiscard]] std::string file() const;
  void take_entered(Time now);
  void free_place(Own& own);
  [[nodiscard]] bool dissolve(Own& own);
  [[nodiscard]] bool has_left_groups(pid_t tgid) const;
  void write_down(Time now, const std::string& about_to_be_made = "");

  std::span<FrozenGroup> memory_;
  std::vector<std::size_t> free_;  // places in it
  Places places_;
  std::unordered_map<pid_t, Own> of_;
  std::vector<Leaving> leaving_;
  std::optional<Entering> entering_;
  std::optional<std::pair<pid_t, Error>> failed_;  // the last one that could not enter, until it is asked for
  bool changed_ = false;                           // since they were written down
  Time write_next_{};
  bool warned_ = false;
};

}  // namespace swapd::daemon
