// The actuator's inside. Its parts: actuator.cpp (what the engine calls), boost.cpp (one boost begins, changes,
// ends), group_boosters.cpp (groups), journal.cpp and recovery.cpp (giving back). Internal to actuate/.
#pragma once

#include "actuate/actuator.h"
#include "actuate/entry.h"
#include "actuate/group_boosters.h"
#include "actuate/head_start.h"
#include "actuate/io_priority.h"
#include "actuate/journal.h"
#include "actuate/past_boosts.h"
#include "actuate/recovery.h"
#include "sys/sched/scheduler.h"

namespace swapd::actuate {

struct Actuator::Impl {
  Impl(const sys::Scheduler& scheduler, const sys::Groups& groups, Options options);

  void apply(std::span<const Boost> boosts, Time now);
  void apply_changes(std::span<const Boost> boosts, std::span<const ThreadId> over, Time now);
  void begin_or_renew(std::span<const Boost> boosts, Time now);
  HashMap<ThreadId, Entry>::iterator end(HashMap<ThreadId, Entry>::iterator entry);
  void set_rules(const Rules& rules);
  // Past a limit: why it rests, and until when.
  struct Rest {
    Ineffective reason = Ineffective::ceiling;
    Time until{};
  };
  // A thing that both of the boost's classes must allow.
  [[nodiscard]] bool allowed(const Boost& boost, bool Rules::*what) const;
  [[nodiscard]] static std::optional<Rest> at_limit(const Boost& boost, bool realtime, Time now);
  void suspend(Entry& entry, const Rest& rest);
  void finish(Entry& entry);          // gives back, without reporting an end of what never began
  void drop(Entry& entry);            // the thread has gone: nothing to give back
  void release_thread(Entry& entry);  // gives the thread its own and clears the record
  void lend_group(Entry& entry, Time now);
  void leave_groups(Entry& entry, Time now);
  void engage(Entry& entry, Time now, Outcome::What as);
  [[nodiscard]] Status give(Entry& entry, const SchedAttr& set);
  [[nodiscard]] bool begin_head_start(Entry& entry);
  void end_head_starts(Time now);

  void open_journal();
  // The attributes that the thread may have now because of the boost; empty: none.
  struct Terms {
    std::optional<SchedAttr> lent;
    Ineffective limited = Ineffective::none;
  };
  [[nodiscard]] Terms terms(const Entry& entry, Time now) const;
  // The attributes that the thread is set to where it is lent these.
  [[nodiscard]] SchedAttr attributes(const Entry& entry, const SchedAttr& lent) const;
  // Less than the thread's own is lent only to lower it.
  [[nodiscard]] bool gains(const Entry& entry, const SchedAttr& lent) const;
  void begin(const Boost& boost, Time now);
  void renew(Entry& entry, const Boost& boost, Time now);
  // Reads the thread's present attributes. false: the boost is over for this donation (the thread has gone, or another
  // program insists on changing it).
  [[nodiscard]] bool audit(Entry& entry, Time now);
  void refuse(Entry& entry, const Error& error);
  void leave_alone(Entry& entry, const Terms& terms, Time now);
  [[nodiscard]] bool confined(const Entry& entry) const;
  void report(Outcome::What what, const Entry& entry, int error = 0) const;
  // For a child that is born later.
  [[nodiscard]] Past past_of(const Entry& entry) const;
  // For a child that was forked while its parent's own was laid aside.
  bool adopt_io_priority(ThreadId child, ThreadId parent, int own, bool still_laid_aside) const;

  const sys::Scheduler& scheduler;
  GroupBoosters group_boosters;
  IoPriorityOverride io_lender;
  const sys::Groups& groups;
  Options options;
  std::optional<Journal> journal;
  std::optional<Error> journal_error;
  std::vector<std::string> notes;
  std::function<void(const Outcome&)> listener;
  HashMap<ThreadId, Entry> entries;
  HeadStarts head_starts;
  PastBoosts past;
  // The complete set, as it was applied last.
  struct Whole {
    std::uint64_t round = 0;
    Time time{};
    std::uint64_t surroundings = 0;  // then; 0: it is wanted again
  } whole;
  std::uint64_t surroundings = 1;
  std::uint64_t total = 0;
};

}  // namespace swapd::actuate
