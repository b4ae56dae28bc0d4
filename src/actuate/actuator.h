// Applies donations to threads and takes them back (docs/design.md, Donation): journal first, then the attributes, and
// the group (autogroup, cpu cgroup) where nice alone cannot reach. What is not renewed is undone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/class_id.h"
#include "base/recycled.h"
#include "base/resource.h"
#include "base/result.h"
#include "base/sched_attr.h"
#include "base/thread_id.h"
#include "base/time.h"

namespace swapd::sys {
class Scheduler;
class Groups;
}  // namespace swapd::sys

namespace swapd::actuate {

// The words of the contract, "none" for an effective donation.
enum class Ineffective : std::uint8_t {
  none,
  autogroup,
  cgroup_weight,
  cgroup_quota,
  cgroup_idle,  // cpu.idle of its cgroup: its threads run after those of all other groups, whatever nice value they
                // have
  rt_group,
  rt_refused,  // the kernel takes no real-time priority for the thread, and its cgroup is not known to be why
  rttime,      // RLIMIT_RTTIME: the kernel would end its process for a real-time priority that it never asked for
  no_progress,
  affinity,
  ceiling,
  quota,
  policy,
  stopped,    // the thread has been stopped by a signal or a debugger
  frozen,     // … by its cgroup
  unmanaged,  // swapd was not asked to manage the provider
};
[[nodiscard]] std::string_view name(Ineffective reason);  // "cgroup-weight" …

// The attributes that one thread is to run with, and for which requester.
struct Boost {
  ThreadId thread;
  ThreadId requester;
  Resource resource;
  SchedAttr attr;
  std::uint32_t user = 0;  // the requester's; root has no quota
  ClassId requester_class = 0;
  ClassId provider_class = 0;
  // Set if a real-time `attr` would do harm or is refused: an ordinary nice value. Empty: then the thread is not
  // boosted.
  std::optional<SchedAttr> second_best{};
  // Not none: the reason, found by the caller, why no more than `second_best` is set. The actuator finds rttime,
  // rt_group and rt_refused for itself.
  Ineffective limited = Ineffective::none;
  // It has not helped so far (`no-progress`): the boost is smaller by now, or withheld.
  bool doubted = false;
  bool withheld = false;
  // `attr` is less than the thread's own, and meant to be.
  bool lowers = false;
  // For a quiet one: the thread's autogroup has the nice value 19 meanwhile, so that its threads take next to nothing
  // from those of other groups. Where it has a nice value of its own, or there is none, nothing is changed.
  bool lowers_group = false;
  // The slice of `attr` is all that is set: the rest stays as the thread has it, whatever that is by then.
  bool slice_only = false;
  // It stays between waits: the thread may not be waited for just now.
  bool stands = false;
  // It comes and goes many times a second: no outcome tells of it, it is not among active(), and nothing but the
  // thread's scheduling attributes is changed for it.
  bool quiet = false;
  // It rests until then: `ceiling`, if what is set would be real-time; `quota`, whatever is set.
  std::optional<Time> ceiling_until{};
  std::optional<Time> quota_until{};
};

struct Rules {
  bool realtime = true;      // false: no thread is made real-time, not even a newborn for a moment
  bool group_action = true;  // may change an autogroup's nice or a cgroup's weight
  // Those of class 1, 2 …: their own `classes` and what is the user's are not looked at.
  std::vector<Rules> classes{};

  [[nodiscard]] const Rules& of(ClassId id) const { return id == 0 || id > classes.size() ? *this : classes[id - 1]; }
};

// An event in the life of one boost; handed to the listener for events and counters.
struct Outcome {
  enum class What : std::uint8_t { begun, changed, ended, ineffective, rebased, failed } what = What::begun;
  Boost boost;
  Ineffective reason = Ineffective::none;
  SchedAttr base;                           // the thread's own
  int error = 0;                            // errno of `failed`
  SchedAttr lent{};                         // of the boost: its `attr`, or the second best
  Ineffective limited = Ineffective::none;  // why the second best
};

// Other runnable threads' groups, found by the worker (no scan on the engine thread).
struct Competitors {
  std::vector<std::int64_t> autogroups;  // ids with a runnable thread that is not managed-and-boosted
  std::vector<std::string> cpu_groups;   // cpu cgroup paths (sys::Groups::group_of) with a runnable thread
  // By CPU number: the highest rank of a thread that runs there and that swapd has not boosted; -1: none, or unknown.
  // May be empty. A provider whose affinity leaves it only CPUs with a higher rank gains nothing: `affinity`.
  std::vector<int> cpu_ranks;
  // The cgroups (DiskGroups) of who waits for a disk, or did within the last two seconds: of the boosted threads, and
  // of all others. Sorted.
  std::vector<std::string> boosted_at_disks, others_at_disks;
  // The cpu groups of the boosted threads that they are in, and those above, that had been looked at shortly before as
  // well, and whether a quota of the group has held threads back in between.
  std::map<std::string, bool> throttled;
  // The boosted threads that do not run, whatever their boost: stopped, frozen. Sorted.
  std::vector<std::pair<ThreadId, Ineffective>> halted;
  // A quota stands over a boosted thread, and whether it holds it back is known only after another look.
  bool unsure = false;
  [[nodiscard]] bool at_disks() const { return !boosted_at_disks.empty() && !others_at_disks.empty(); }
  bool operator==(const Competitors&) const = default;
};

// Cgroups that share disks, by one kind of weights.
struct DiskGroups {
  enum class By : std::uint8_t { bfq, iocost } by = By::bfq;
  const sys::Groups* groups = nullptr;
};

class Actuator {
 public:
  struct Options {
    std::string state_dir;  // the journal is STATE_DIR/journal; empty: none is kept
    bool dry_run = false;   // nothing is touched, outcomes are reported
    Rules rules;
    std::string boot_id;                                            // empty: this boot's, from /proc
    std::function<std::optional<std::uint64_t>(pid_t)> start_time;  // of a thread; empty: from /proc
    std::function<bool(ThreadId)> newborn;                          // empty: by its start time
    std::function<void(Duration)> rest;                             // empty: sleeps
    std::vector<DiskGroups> disk_groups;
  };
  Actuator(const sys::Scheduler& scheduler, const sys::Groups& groups, Options options);
  ~Actuator();  // restores everything
  Actuator(const Actuator&) = delete;
  Actuator& operator=(const Actuator&) = delete;

  // Reads the journal of an earlier run and gives back what it left changed: threads that are still the same and
  // still have what it set. Returns how many. Call before the first apply().
  // An error (EBUSY: another swapd has the state directory) means that there is no journal, and then nothing is ever
  // boosted.
  [[nodiscard]] Result<int> recover();
  // Oddities that recover() found, for the log: a file set aside, damaged records, a thread it could not give back.
  [[nodiscard]] const std::vector<std::string>& recovery_notes() const;

  // The complete set of boosts in force from now on, at most one a thread: begins, changes and ends what differs.
  // [engine] A thread whose own attributes are at least as good is left alone (and not reported).
  void apply(std::span<const Boost> boosts, Time now);
  // The part of the complete set that has changed since the last call of either: boosts that are new or other ones, and
  // threads that have none any more. Only where takes_changes(): the complete set is wanted every 20 ms, to look after
  // each thread (20 to 40 ms after the last look at it), and when something else than a boost has changed.
  void apply_changes(std::span<const Boost> boosts, std::span<const ThreadId> over, Time now);
  [[nodiscard]] bool takes_changes(Time now) const;
  void want_all();
  // A thread with a real-time donation goes behind the others of its priority, as by sched_yield(2): a thread that it
  // has woken need not wait until it sleeps. False where it has no such donation.
  bool give_way(ThreadId thread);
  // Takes back everything.
  void restore_all();
  // The thread's own attributes, which a donation in force hides; changes them under it (`swapctl set`). [engine]
  [[nodiscard]] Status set_base(ThreadId thread, const SchedAttr& base);
  [[nodiscard]] std::optional<SchedAttr> base(ThreadId thread) const;  // empty: no donation in force
  void forget(ThreadId thread);                                        // it has exited
  // A thread has become another in execve(2), attributes and all: its boost is taken back there.
  void became(ThreadId before, ThreadId now);
  // `parent` has forked `child`: if it ran with a donation then, the child has what reset-on-fork leaves, not what the
  // parent's own attributes would have given it. Gives it that, unless the child has chosen for itself meanwhile.
  // surely: `parent` itself has, and not only a thread of its process; without that the child keeps its I/O priority.
  void adopt_child(ThreadId child, ThreadId parent, bool surely = true);
  void set_rules(const Rules& rules);
  void set_competitors(Competitors competitors);
  // The CPU groups' own weights: see GroupBooster.
  [[nodiscard]] std::optional<std::uint64_t> own_weight(const std::string& group, std::uint64_t since) const;
  [[nodiscard]] std::uint64_t group_changes() const;
  void forget_what_passes();  // who is at disks, stands still or is throttled: it was long ago
  void on_outcome(std::function<void(const Outcome&)> listener);

  struct Active {
    Boost boost;
    SchedAttr base;
    Ineffective reason = Ineffective::none;
    SchedAttr lent{};                         // of the boost: its `attr`, or the second best
    Ineffective limited = Ineffective::none;  // why the second best
    bool in_force = false;                    // it runs with it
  };
  [[nodiscard]] Vector<Active> active() const;
  // Those of them that are in force with a real-time priority.
  [[nodiscard]] Vector<Active> realtime() const;
  [[nodiscard]] bool any_active() const;
  [[nodiscard]] std::optional<Active> active(ThreadId thread) const;
  [[nodiscard]] std::uint64_t total() const;  // donations begun since start

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::actuate
