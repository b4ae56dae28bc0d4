// Makes a donated nice value count if threads share the CPU by group (docs/design.md, Donation).
//
// A nice value only divides a group's share among its members. So the groups of the provider and of the runnable
// competitors are compared: where they part, the provider's autogroup gets the donated nice value, or its cpu cgroups
// the weight of that. A group may be held up by several boosts: it has the best of what they ask for, and its own value
// back when the last one goes. Raised by those only: a group that stands higher already is left alone.
//
// lower() is the other way: an autogroup without a nice value of its own has the worst one as long as some thread of it
// asks for that, and no boost for a better one.
//
// At a group that is idle (cpu.idle), and in which the two part, no nice value counts, and the kernel takes no weight
// for it: GroupBooster makes it an ordinary group while the donation lasts.
//
// The groups that share disks likewise, by a GroupBooster of their own: where some provider of the group waits for a
// disk, and others do in other groups.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actuate/actuator.h"
#include "actuate/journal.h"
#include "sys/sched/groups.h"

namespace swapd::actuate {

class GroupBooster {
 public:
  // `journal` may be null: none is kept. dry_run: looks, and changes nothing. kind: of what it changes besides
  // autogroups. For disks it changes nothing until set_competitors() was called.
  GroupBooster(const sys::Groups& groups, bool dry_run, Change::Kind kind = Change::Kind::cgroup)
      : groups_(groups), dry_run_(dry_run), kind_(kind) {}
  void set_journal(Journal* journal) { journal_ = journal; }
  void set_competitors(Competitors competitors) { competitors_ = std::move(competitors); }
  [[nodiscard]] const std::optional<Competitors>& competitors() const { return competitors_; }
  // Why the thread does not run, whatever its boost, as the competitors' scan has seen it; none: it can.
  [[nodiscard]] Ineffective halted(ThreadId thread) const;

  // The thread is lent `nice`: acts where it must. Replaces what it was lent before. The answer is why this falls
  // short, or none.
  [[nodiscard]] Ineffective lend(ThreadId thread, int nice, bool allowed, Time now);
  // The thread's autogroup takes next to nothing from others. Replaces what it was lent before.
  void lower(ThreadId thread, Time now);
  void take_back(ThreadId thread);
  void forget(ThreadId thread);  // its place, too
  // A group's own weight, if a boost has changed it at some time since changes() was `since`; 0: the group is idle.
  [[nodiscard]] std::optional<std::uint64_t> own_weight(const std::string& group, std::uint64_t since) const;
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  // Whether the thread's v1 cpu group has no real-time runtime, as of the last second.
  [[nodiscard]] bool lacks_realtime(ThreadId thread, Time now);

 private:
  // A thread's place among the groups, looked up at most once a second: a donation may begin a thousand times in it.
  struct Place {
    std::string group = "/";
    std::int64_t autogroup = -1;
    std::vector<std::string> tight;  // of the group and those above it, the ones that may use less than one CPU
    std::vector<std::string> idle;   // and those that are idle (cpu.idle)
    bool no_realtime = false;        // the group has no real-time runtime
    Time seen{};
  };
  struct Held {
    Change change;
    Journal::Slot slot = Journal::none;
    std::vector<std::pair<ThreadId, std::int64_t>> users;  // and the value that each asks for
    bool of_idle = false;                                  // a weight of a group that is idle of its own
  };
  struct Want {
    Change::Kind kind;
    std::string key;  // of held_
    int nice;
    bool lowers = false;
  };

  [[nodiscard]] const Place& place(ThreadId thread, Time now);
  [[nodiscard]] Ineffective wants(const Place& place, int nice, std::vector<Want>& out) const;
  [[nodiscard]] bool throttled(const Place& place) const;
  void wants_at_disks(const Place& place, int nice, std::vector<Want>& out) const;
  [[nodiscard]] Status hold(const Want& want, ThreadId thread);
  void leave_all_but(const std::vector<Want>& asked, ThreadId thread);
  [[nodiscard]] static std::int64_t best(const Held& held);
  [[nodiscard]] Status write(Held& held, std::int64_t value);
  void leave(Held& held, ThreadId thread);
  [[nodiscard]] static std::uint64_t own_weight(const Held& held);

  const sys::Groups& groups_;
  const bool dry_run_;
  const Change::Kind kind_;
  Journal* journal_ = nullptr;
  std::optional<Competitors> competitors_;
  std::unordered_map<std::string, Held> held_;
  struct Former {
    std::uint64_t own = 0;    // as own_weight() has it
    std::uint64_t ended = 0;  // changes() then
  };
  std::unordered_map<std::string, Former> formerly_held_;  // weights, by group
  std::uint64_t changes_ = 0;
  std::unordered_map<ThreadId, Place> places_;
  bool autogroups_ = false;
  std::optional<Time> autogroups_seen_;
};

// The journal's kind for records of such weights.
[[nodiscard]] Change::Kind kind_of(DiskGroups::By by);

// Gives a group its old value back if it still has the new one. true: done; false: gone, or changed by another program.
[[nodiscard]] Result<bool> restore_group(const sys::Groups& groups, const Change& change);

// The group and those above it, the root left out: "/a/b" gives "/a/b", "/a".
[[nodiscard]] std::vector<std::string> lineage(std::string group);

// How many path components two groups share; "/" has none.
[[nodiscard]] std::size_t shared_depth(const std::string& a, const std::string& b);

}  // namespace swapd::actuate
