// One boost: how it begins, changes and ends.
//
// The order never varies: the record, the change, then away with the record that the change made void. Of a real-time
// donation the engine pays sched_getattr and sched_setattr at the begin; at the end also getpriority, because a
// `renice` of a thread that runs real-time is visible nowhere else, and must not be undone.
#include <algorithm>
#include <utility>

#include "actuate/attributes.h"
#include "actuate/head_start.h"
#include "actuate/impl.h"

namespace swapd::actuate {
namespace {

// After so many foreign changes in one donation the thread is left to their author: two daemons that both insist
// would chase each other.
constexpr int max_foreign_changes = 3;

}  // namespace

void Actuator::Impl::report(Outcome::What what, const Entry& entry, int error) const {
  if (!listener || (entry.boost.quiet && what != Outcome::What::rebased && what != Outcome::What::failed)) return;
  const Ineffective limited = entry.in_force() ? entry.limited : Ineffective::none;
  listener({what, entry.boost, entry.reason, entry.base, error, entry.lent, limited});
}

Past Actuator::Impl::past_of(const Entry& entry) const {
  const ThreadId thread = entry.boost.thread;
  return {thread, entry.base, entry.set, io_lender.saved_priority(thread)};
}

void Actuator::Impl::begin(const Boost& boost, Time now) {
  auto own = scheduler.get(boost.thread.tid);
  if (!own.ok() && own.error().gone()) return;
  Entry& entry = entries[boost.thread];
  const Ineffective told = entry.limited;
  entry = Entry{};
  entry.told = told;
  entry.boost = boost;
  entry.lent = boost.attr;
  entry.round = whole.round;
  entry.looked = now;
  if (!own.ok()) return refuse(entry, own.error());
  entry.base = *own;
  if (!begin_head_start(entry)) engage(entry, now, Outcome::What::begun);
}

// A thread that is real-time of its own has made its peace with RLIMIT_RTTIME: its priority changes nothing there.
Actuator::Impl::Terms Actuator::Impl::terms(const Entry& entry, Time now) const {
  const Boost& boost = entry.boost;
  if (boost.limited != Ineffective::none) return {boost.second_best, boost.limited};
  if (!boost.attr.realtime() || rank(entry.base) >= rank(boost.attr)) return {boost.attr, Ineffective::none};
  if (!entry.base.realtime() && scheduler.limits_realtime(boost.thread.tid))
    return {boost.second_best, Ineffective::rttime};
  if (entry.refusal.stands(now)) return {boost.second_best, entry.refusal.reason};
  return {boost.attr, Ineffective::none};
}

// A thread that is lowered keeps its slice and its nice value, so that nothing else changes for it.
SchedAttr Actuator::Impl::attributes(const Entry& entry, const SchedAttr& lent) const {
  if (entry.boost.slice_only) {
    SchedAttr set = entry.base;
    set.runtime_ns = merged(entry.base, lent, scheduler.default_slice_ns()).runtime_ns;
    return set;
  }
  if (!entry.boost.lowers) return merged(entry.base, lent, scheduler.default_slice_ns());
  SchedAttr set = lent;
  set.nice = entry.base.nice;
  set.runtime_ns = entry.base.runtime_ns;
  return set;
}

// (Past half of its records the journal is kept for what is lent.)
bool Actuator::Impl::gains(const Entry& entry, const SchedAttr& lent) const {
  if (!entry.boost.slice_only) return entry.boost.lowers || rank(lent) > rank(entry.base);
  if (!entry.in_force() && journal && journal->used() > Journal::capacity / 2) return false;
  return entry.base.policy == SchedPolicy::other && attributes(entry, lent).runtime_ns != entry.base.runtime_ns;
}

// From the thread's own attributes in entry.base, or from an earlier donation's, to what the boost says.
void Actuator::Impl::engage(Entry& entry, Time now, Outcome::What as) {
  const Terms terms = this->terms(entry, now);
  if (!terms.lent || !gains(entry, *terms.lent)) return leave_alone(entry, terms, now);
  SchedAttr set = attributes(entry, *terms.lent);
  if (const auto rest = at_limit(entry.boost, set.realtime(), now)) {
    entry.lent = *terms.lent;
    entry.limited = terms.limited;
    return suspend(entry, *rest);
  }
  if (set.realtime()) set.nice = entry.in_force() ? entry.set.nice : entry.base.nice;
  const bool was_in_force = entry.in_force() && !entry.starts;
  if (auto given = give(entry, set); !given.ok()) {
    // The kernel gives EPERM both for a missing privilege and for a group without real-time runtime. With what has been
    // refused written down the terms are others.
    const bool no_realtime = given.error().code() == EPERM && set.realtime() && terms.limited == Ineffective::none;
    if (!no_realtime) return refuse(entry, given.error());
    const bool no_runtime = group_boosters.lacks_realtime(entry.boost.thread, now);
    entry.refusal = {no_runtime ? Ineffective::rt_group : Ineffective::rt_refused, now};
    return engage(entry, now, as);
  }
  const bool newly_limited = terms.limited != Ineffective::none && terms.limited != entry.limited;
  entry.lent = *terms.lent;
  entry.limited = terms.limited;
  if (entry.limited == Ineffective::none) entry.refusal = {};
  if (entry.boost.quiet) return leave_groups(entry, now);
  if (as == Outcome::What::begun) ++total;
  lend_group(entry, now);
  if (entry.reason == Ineffective::none && confined(entry)) entry.reason = Ineffective::affinity;
  if (entry.reason == Ineffective::none && newly_limited && was_in_force && listener)
    return listener({Outcome::What::ineffective, entry.boost, entry.limited, entry.base, 0, entry.lent, entry.limited});
  report(entry.reason == Ineffective::none ? as : Outcome::What::ineffective, entry);
}

// Its own is as good as what it may be lent; where that is not all that the boost says, the reason is told.
void Actuator::Impl::leave_alone(Entry& entry, const Terms& terms, Time now) {
  const bool was_in_force = entry.in_force() && !entry.starts;
  finish(entry);
  entry.state = Entry::State::left_alone;
  entry.lent = entry.boost.attr;
  entry.limited = Ineffective::none;
  if (terms.limited == Ineffective::none || rank(entry.base) >= rank(entry.boost.attr)) {
    if (was_in_force) report(Outcome::What::ended, entry);
    return;
  }
  entry.state = Entry::State::refused;
  entry.reason = entry.limited = terms.limited;
  entry.looked = now;
  if (was_in_force || std::exchange(entry.told, terms.limited) != terms.limited)
    report(Outcome::What::ineffective, entry);
}

// Record, change, old record away. On failure the thread has what it had.
Status Actuator::Impl::give(Entry& entry, const SchedAttr& set) {
  Journal::Slot slot = Journal::none;
  if (!options.dry_run) {
    // Its own number (ENOENT, say) would be taken for the thread's.
    if (journal_error) return Error(EIO, "journalling: " + journal_error->text());
    if (journal) {
      Change change;
      change.thread = entry.boost.thread;
      change.base = entry.base;
      change.set = set;
      auto kept = journal->write(change);
      if (!kept.ok()) return std::move(kept).error();
      slot = *kept;
    }
    if (!entry.in_force() || !still_has(entry.set, set)) {
      if (entry.in_force()) past.remember(past_of(entry));
      // Straight from a real-time class to SCHED_IDLE the thread would keep its lag as it was counted with its full
      // weight, and have a whole tick of CPU time for it while the others wait (measured: 2 of 12 ms). Within the fair
      // class the kernel scales it.
      if (entry.in_force() && entry.set.realtime() && set.policy == SchedPolicy::idle)
        (void)scheduler.set(entry.boost.thread.tid, entry.base);
      if (auto given = scheduler.set(entry.boost.thread.tid, set); !given.ok()) {
        if (journal) journal->clear(slot);
        return given;
      }
    }
    if (journal) journal->clear(entry.slot);
  }
  entry.slot = slot;
  entry.set = set;
  entry.state = Entry::State::in_force;
  return Done{};
}

// With a record of its own, as any other change. False: it takes none, and nothing is changed.
bool Actuator::Impl::begin_head_start(Entry& entry) {
  const ThreadId thread = entry.boost.thread;
  if (options.dry_run || entry.boost.limited != Ineffective::none || entry.boost.quiet) return false;
  if (!allowed(entry.boost, &Rules::realtime) || at_limit(entry.boost, true, entry.looked)) return false;
  if (rank(entry.base) >= rank(entry.boost.attr) || !takes_head_start(entry.base, entry.boost.attr) ||
      !options.newborn(thread) || scheduler.limits_realtime(thread.tid))
    return false;
  if (head_starts.has_had(thread)) return false;
  SchedAttr set = head_start();
  set.nice = entry.base.nice;
  if (!give(entry, set).ok()) return false;
  head_starts.begin(thread);
  entry.starts = true;
  return true;
}

// The engine rests: where it has the threads' CPU, it would be in the way. What they have done to themselves meanwhile
// is theirs.
void Actuator::Impl::end_head_starts(Time now) {
  if (!head_starts.any()) return;
  options.rest(head_start_time);
  for (const ThreadId thread : head_starts.end()) {
    const auto known = entries.find(thread);
    if (known == entries.end() || !known->second.in_force()) continue;
    if (audit(known->second, now)) engage(known->second, now, Outcome::What::begun);
    known->second.starts = false;
  }
}

void Actuator::Impl::lend_group(Entry& entry, Time now) {
  entry.surroundings = surroundings;
  io_lender.lend(entry.boost.thread, entry.set);
  const bool groups_allowed = allowed(entry.boost, &Rules::group_action);
  entry.reason = group_boosters.lend(entry.boost.thread, entry.set, groups_allowed, now);
  if (entry.boost.doubted && entry.reason == Ineffective::none) entry.reason = Ineffective::no_progress;
  if (const Ineffective halted = group_boosters.halted(entry.boost.thread); halted != Ineffective::none)
    entry.reason = halted;
}

// Takes back what an earlier boost of the thread gave its groups, and lowers them where a quiet one says so.
void Actuator::Impl::leave_groups(Entry& entry, Time now) {
  entry.surroundings = surroundings;
  entry.reason = Ineffective::none;
  if (entry.boost.lowers_group && allowed(entry.boost, &Rules::group_action))
    group_boosters.lower(entry.boost.thread, now);
  else
    group_boosters.take_back(entry.boost.thread);
  io_lender.take_back(entry.boost.thread);
}

void Actuator::Impl::refuse(Entry& entry, const Error& error) {
  release_thread(entry);
  if (error.gone()) return drop(entry);
  entry.state = Entry::State::refused;
  entry.reason = entry.limited = Ineffective::none;
  report(Outcome::What::failed, entry, error.code());
}

// Whether every CPU that the thread may use is known to be held by a thread of a higher rank than it now has.
bool Actuator::Impl::confined(const Entry& entry) const {
  const auto& rivals = group_boosters.competitors();
  if (!rivals || rivals->cpu_ranks.empty()) return false;
  const auto cpus = scheduler.affinity(entry.boost.thread.tid);
  if (!cpus.ok()) return false;
  const int own = rank(entry.set);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &*cpus)) continue;
    if (cpu >= rivals->cpu_ranks.size() || rivals->cpu_ranks[cpu] <= own) return false;
  }
  return true;
}

bool Actuator::Impl::allowed(const Boost& boost, bool Rules::*what) const {
  return options.rules.of(boost.requester_class).*what && options.rules.of(boost.provider_class).*what;
}

std::optional<Actuator::Impl::Rest> Actuator::Impl::at_limit(const Boost& boost, bool realtime, Time now) {
  if (boost.withheld) return Rest{Ineffective::no_progress, Time::max()};
  if (realtime && boost.ceiling_until && now < *boost.ceiling_until)
    return Rest{Ineffective::ceiling, *boost.ceiling_until};
  if (boost.quota_until && now < *boost.quota_until) return Rest{Ineffective::quota, *boost.quota_until};
  return std::nullopt;
}

void Actuator::Impl::suspend(Entry& entry, const Rest& rest) {
  release_thread(entry);
  entry.state = Entry::State::suspended;
  entry.reason = rest.reason;
  report(Outcome::What::ineffective, entry);
}

void Actuator::Impl::renew(Entry& entry, const Boost& boost, Time now) {
  const bool other_attr = entry.boost.attr != boost.attr || entry.boost.second_best != boost.second_best ||
                          entry.boost.limited != boost.limited || entry.boost.doubted != boost.doubted ||
                          entry.boost.withheld != boost.withheld || entry.boost.lowers != boost.lowers ||
                          entry.boost.lowers_group != boost.lowers_group || entry.boost.quiet != boost.quiet ||
                          entry.boost.slice_only != boost.slice_only;
  const bool other_requester = entry.boost.requester != boost.requester || entry.boost.resource != boost.resource;
  const bool other_terms =
      entry.boost.requester_class != boost.requester_class || entry.boost.provider_class != boost.provider_class;
  // A donation that follows on a quiet boost begins, and one that is followed by a quiet boost ends.
  const Outcome::What as = entry.boost.quiet && !boost.quiet ? Outcome::What::begun : Outcome::What::changed;
  if (boost.quiet && !entry.boost.quiet && (entry.in_force() || entry.reason != Ineffective::none))
    report(Outcome::What::ended, entry);
  entry.boost = boost;
  entry.round = whole.round;
  const bool due = other_attr || now - entry.looked >= audit_period;
  switch (entry.state) {
    case Entry::State::suspended:
      if (const auto rest = at_limit(boost, (other_attr ? boost.attr : entry.lent).realtime(), now)) {
        entry.reason = rest->reason;
        return;
      }
      if (const auto own = scheduler.get(boost.thread.tid); own.ok()) entry.base = *own;
      return engage(entry, now, as);
    case Entry::State::refused:
      if (!other_attr && (entry.limited == Ineffective::none || now - entry.looked < refusal_period)) return;
      return begin(boost, now);
    case Entry::State::left_alone:
      if (due) begin(boost, now);
      return;
    case Entry::State::in_force:
      break;
  }
  if (due && !audit(entry, now)) return;
  if (!entry.in_force()) return;  // what another program gave it is as good
  if (const auto rest = at_limit(boost, entry.set.realtime(), now)) return suspend(entry, *rest);
  if (other_attr || (due && terms(entry, now).limited != entry.limited)) return engage(entry, now, as);
  const Ineffective before = entry.reason;
  if (!entry.boost.quiet && (entry.surroundings != surroundings || other_terms)) {
    lend_group(entry, now);
    if (entry.reason == Ineffective::none && confined(entry)) entry.reason = Ineffective::affinity;
  }
  if (entry.reason != before)
    report(entry.reason == Ineffective::none ? Outcome::What::changed : Outcome::What::ineffective, entry);
  else if (other_requester)
    report(Outcome::What::changed, entry);
}

bool Actuator::Impl::audit(Entry& entry, Time now) {
  entry.looked = now;
  if (options.dry_run) return true;
  const pid_t tid = entry.boost.thread.tid;
  const auto seen = scheduler.get(tid);
  if (!seen.ok()) {
    if (seen.error().gone()) return false;  // its end is reported when the engine hears of it
    refuse(entry, seen.error());
    return false;
  }
  if (still_has(*seen, entry.set)) {
    if (!entry.set.realtime() || entry.base.realtime()) return true;
    const auto nice = scheduler.nice(tid);
    if (!nice.ok() || *nice == entry.set.nice) return true;
    // A renice under a real-time donation: it takes effect when the donation ends.
    entry.base.nice = static_cast<std::int8_t>(*nice);
    SchedAttr set = entry.set;
    set.nice = entry.base.nice;
    if (auto given = give(entry, set); !given.ok()) {
      refuse(entry, given.error());
      return false;
    }
    report(Outcome::What::rebased, entry);
    return true;
  }
  // Another program's attributes are the thread's own from now on. The record of what swapd set is void.
  past.remember(past_of(entry));
  entry.base = own_by_now(scheduler, tid, *seen, entry.base, entry.set);
  if (entry.base != *seen) (void)scheduler.set(tid, entry.base);
  if (journal) journal->clear(entry.slot);
  entry.slot = Journal::none;
  entry.state = Entry::State::left_alone;
  ++entry.foreign_changes;
  report(Outcome::What::rebased, entry);
  const bool as_good = !entry.boost.lowers && !entry.boost.slice_only && rank(entry.base) >= rank(entry.boost.attr);
  if (entry.foreign_changes >= max_foreign_changes || as_good) {
    group_boosters.take_back(entry.boost.thread);
    io_lender.take_back(entry.boost.thread);
    entry.reason = Ineffective::none;
    if (entry.foreign_changes >= max_foreign_changes) entry.state = Entry::State::refused;
    report(Outcome::What::ended, entry);
    return false;
  }
  engage(entry, now, entry.starts ? Outcome::What::begun : Outcome::What::changed);
  return false;
}

void Actuator::Impl::release_thread(Entry& entry) {
  if (entry.in_force()) past.remember(past_of(entry));  // while its I/O priority is laid aside
  group_boosters.take_back(entry.boost.thread);
  io_lender.take_back(entry.boost.thread);
  if (!entry.in_force()) return;
  entry.state = Entry::State::left_alone;
  if (options.dry_run) return;
  auto done = restore_thread(scheduler, entry.boost.thread.tid, entry.base, entry.set);
  if (!done.ok()) {
    // The record stays: the next start tries again.
    entry.slot = Journal::none;
    return report(Outcome::What::failed, entry, done.error().code());
  }
  if (journal) journal->clear(entry.slot);
  entry.slot = Journal::none;
  if (done->what == Restored::What::gone || done->own == entry.base) return;
  entry.base = done->own;
  report(Outcome::What::rebased, entry);
}

void Actuator::Impl::finish(Entry& entry) {
  release_thread(entry);
  entry.reason = Ineffective::none;
}

void Actuator::Impl::drop(Entry& entry) {
  if (entry.in_force()) past.remember(past_of(entry));
  if (journal) journal->clear(entry.slot);
  entry.slot = Journal::none;
  group_boosters.forget(entry.boost.thread);
  io_lender.forget(entry.boost.thread);
  entry.state = Entry::State::left_alone;
  entry.reason = Ineffective::none;
}

}  // namespace swapd::actuate
