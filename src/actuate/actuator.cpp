#include "actuate/actuator.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "actuate/attributes.h"
#include "actuate/head_start.h"
#include "actuate/impl.h"
#include "base/words.h"
#include "sys/procfs/procfs.h"

namespace swapd::actuate {
namespace {

std::optional<std::uint64_t> start_time_from_proc(pid_t tid) {
  const auto stat = sys::Procfs().stat(tid);
  if (!stat.ok()) return std::nullopt;
  return stat->start_time;
}

}  // namespace

std::string_view name(Ineffective reason) {
  static constexpr auto ineffective_words = words<Ineffective>({{"none", Ineffective::none},
                                                                {"autogroup", Ineffective::autogroup},
                                                                {"cgroup-weight", Ineffective::cgroup_weight},
                                                                {"cgroup-idle", Ineffective::cgroup_idle},
                                                                {"cgroup-quota", Ineffective::cgroup_quota},
                                                                {"rt-group", Ineffective::rt_group},
                                                                {"rt-refused", Ineffective::rt_refused},
                                                                {"rttime", Ineffective::rttime},
                                                                {"no-progress", Ineffective::no_progress},
                                                                {"affinity", Ineffective::affinity},
                                                                {"ceiling", Ineffective::ceiling},
                                                                {"quota", Ineffective::quota},
                                                                {"policy", Ineffective::policy},
                                                                {"stopped", Ineffective::stopped},
                                                                {"frozen", Ineffective::frozen},
                                                                {"unmanaged", Ineffective::unmanaged}});
  return ineffective_words.of(reason);
}

Actuator::Impl::Impl(const sys::Scheduler& linux_scheduler, const sys::Groups& linux_groups, Options chosen)
    : scheduler(linux_scheduler),
      group_boosters(linux_groups, chosen.disk_groups, chosen.dry_run),
      io_lender(linux_scheduler, chosen.dry_run),
      groups(linux_groups),
      options(std::move(chosen)) {
  if (!options.start_time) options.start_time = start_time_from_proc;
  if (!options.newborn) options.newborn = [](ThreadId thread) { return newborn(thread.start_time); };
  if (!options.rest) options.rest = [](Duration time) { std::this_thread::sleep_for(time); };
  if (options.boot_id.empty()) options.boot_id = read_boot_id();
  set_rules(Rules(options.rules));
  open_journal();
}

void Actuator::Impl::set_rules(const Rules& rules) {
  options.rules = rules;
  ++surroundings;
}

void Actuator::Impl::open_journal() {
  if (options.dry_run || options.state_dir.empty()) return;
  auto opened = Journal::open(options.state_dir, options.boot_id);
  if (!opened.ok()) {
    journal_error = std::move(opened).error();
    return;
  }
  journal = std::move(*opened);
  group_boosters.set_journal(&*journal);
  io_lender.set_journal(&*journal);
  notes = journal->notes();
}

// Begins before ends: where a boost moves from one thread of a group to another, the group never falls in between.
void Actuator::Impl::begin_or_renew(std::span<const Boost> boosts, Time now) {
  for (const Boost& boost : boosts) {
    const auto known = entries.find(boost.thread);
    if (known == entries.end())
      begin(boost, now);
    else
      renew(known->second, boost, now);
  }
  end_head_starts(now);
}

HashMap<ThreadId, Entry>::iterator Actuator::Impl::end(HashMap<ThreadId, Entry>::iterator entry) {
  Entry over = entry->second;
  const auto next = entries.erase(entry);
  const bool was_reported = over.in_force() || over.reason != Ineffective::none;
  finish(over);
  if (was_reported) report(Outcome::What::ended, over);
  return next;
}

void Actuator::Impl::apply(std::span<const Boost> boosts, Time now) {
  whole = {whole.round + 1, now, surroundings};
  begin_or_renew(boosts, now);
  for (auto entry = entries.begin(); entry != entries.end();)
    entry = entry->second.round == whole.round ? std::next(entry) : end(entry);
}

void Actuator::Impl::apply_changes(std::span<const Boost> boosts, std::span<const ThreadId> over, Time now) {
  begin_or_renew(boosts, now);
  for (const ThreadId thread : over)
    if (const auto entry = entries.find(thread); entry != entries.end()) end(entry);
}

Actuator::Actuator(const sys::Scheduler& scheduler, const sys::Groups& groups, Options options)
    : impl_(std::make_unique<Impl>(scheduler, groups, std::move(options))) {}

Actuator::~Actuator() {
  impl_->listener = nullptr;  // the listener may be half gone
  restore_all();
}

Result<int> Actuator::recover() {
  if (impl_->journal_error) return *impl_->journal_error;
  if (!impl_->journal) return 0;
  return recover_left(*impl_->journal,
                      {impl_->scheduler, impl_->groups, impl_->options.disk_groups, impl_->options.start_time},
                      impl_->notes);
}

const std::vector<std::string>& Actuator::recovery_notes() const { return impl_->notes; }

void Actuator::apply(std::span<const Boost> boosts, Time now) { impl_->apply(boosts, now); }

void Actuator::apply_changes(std::span<const Boost> boosts, std::span<const ThreadId> over, Time now) {
  impl_->apply_changes(boosts, over, now);
}

void Actuator::want_all() { impl_->whole.surroundings = 0; }

bool Actuator::takes_changes(Time now) const {
  const auto& last = impl_->whole;
  return last.surroundings == impl_->surroundings && now - last.time < audit_period;
}

// The kernel puts a thread behind its equals when its priority rises (sched(7)), never when it is set to what it was.
bool Actuator::give_way(ThreadId thread) {
  const auto known = impl_->entries.find(thread);
  if (known == impl_->entries.end() || !known->second.in_force() || impl_->options.dry_run) return false;
  const SchedAttr& set = known->second.set;
  const auto step = one_lower(set);
  const auto seen = impl_->scheduler.get(thread.tid);
  if (!step || !seen.ok() || !still_has(*seen, set)) return false;
  return impl_->scheduler.set(thread.tid, *step).ok() && impl_->scheduler.set(thread.tid, set).ok();
}

void Actuator::restore_all() { impl_->apply({}, Time{}); }

Status Actuator::set_base(ThreadId thread, const SchedAttr& base) {
  const std::string what = "setting the attributes of thread " + std::to_string(thread.tid);
  if (impl_->options.start_time(thread.tid) != thread.start_time) return Error(ESRCH, what);
  const auto known = impl_->entries.find(thread);
  if (known == impl_->entries.end() || !known->second.in_force()) {
    if (impl_->options.dry_run) return Done{};
    auto set = impl_->scheduler.set(thread.tid, base);
    if (!set.ok() || known == impl_->entries.end()) return set;
    if (known->second.state == Entry::State::suspended)
      known->second.base = base;
    else
      impl_->entries.erase(known);  // it is weighed anew:
    want_all();
    return set;
  }
  Entry& entry = known->second;
  const SchedAttr before = std::exchange(entry.base, base);
  if (!entry.boost.lowers && rank(base) >= rank(entry.lent)) {
    impl_->finish(entry);
    impl_->report(Outcome::What::ended, entry);
    want_all();
    return Done{};
  }
  SchedAttr set = impl_->attributes(entry, entry.lent);
  if (set.realtime()) set.nice = entry.set.nice;
  auto given = impl_->give(entry, set);
  if (!given.ok()) entry.base = before;
  return given;
}

std::optional<SchedAttr> Actuator::base(ThreadId thread) const {
  const auto known = impl_->entries.find(thread);
  if (known == impl_->entries.end() || !known->second.in_force()) return std::nullopt;
  return known->second.base;
}

void Actuator::forget(ThreadId thread) {
  const auto known = impl_->entries.find(thread);
  if (known == impl_->entries.end()) {
    impl_->io_lender.forget(thread);
    return impl_->group_boosters.forget(thread);
  }
  Entry over = known->second;
  impl_->entries.erase(known);
  const bool was_reported = over.in_force() || over.reason != Ineffective::none;
  impl_->drop(over);
  if (was_reported) impl_->report(Outcome::What::ended, over);
}

void Actuator::became(ThreadId before, ThreadId now) {
  const auto known = impl_->entries.find(before);
  if (known == impl_->entries.end() || !known->second.in_force()) return;
  Entry over = known->second;
  impl_->entries.erase(known);
  impl_->group_boosters.take_back(before);
  impl_->io_lender.became(before, now);
  over.boost.thread = now;
  impl_->finish(over);
  impl_->report(Outcome::What::ended, over);
}

void Actuator::adopt_child(ThreadId child, ThreadId parent, bool surely) {
  const auto known = impl_->entries.find(parent);
  const bool lasts = known != impl_->entries.end() && known->second.in_force();
  const std::optional<Past> found = lasts ? impl_->past_of(known->second) : impl_->past.newest(parent);
  if (!found || impl_->options.dry_run) return;
  const SchedAttr left = inherited(found->set);
  const SchedAttr due = inherited(found->base);
  // Its children have what it had, if it has forked by now.
  if (surely && impl_->adopt_io_priority(child, parent, found->io_priority, lasts))
    impl_->past.remember({child, due, left, found->io_priority});
  if (left == due) return;
  const auto now = impl_->scheduler.get(child.tid);
  if (!now.ok() || *now != left) return;
  // Forked after the donation, by a parent whose own attributes have changed since: it has what is due already.
  if (!lasts)
    if (const auto parents = impl_->scheduler.get(parent.tid); parents.ok() && inherited(*parents) == *now) return;
  if (!impl_->scheduler.set(child.tid, due).ok()) return;
  // It may have forked by now, and its children have what it had.
  impl_->past.remember({child, due, left, found->io_priority});
}

bool Actuator::Impl::adopt_io_priority(ThreadId child, ThreadId parent, int own, bool still_laid_aside) const {
  const auto is_none = [&](ThreadId thread) {
    const auto raw = scheduler.io_priority(thread.tid);
    return raw.ok() && io_priority_of(*raw).io_class == IoPriority::Class::none;
  };
  if (own == 0 || !is_none(child) || scheduler.shares_io(child.tid, parent.tid)) return false;
  // By now it has none itself, and so its children have none.
  if (!still_laid_aside && is_none(parent)) return false;
  return scheduler.set_io_priority(child.tid, own).ok();
}

void Actuator::set_rules(const Rules& rules) { impl_->set_rules(rules); }

std::optional<std::uint64_t> Actuator::own_weight(const std::string& group, std::uint64_t since) const {
  return impl_->group_boosters.own_weight(group, since);
}

std::uint64_t Actuator::group_changes() const { return impl_->group_boosters.changes(); }

void Actuator::set_competitors(Competitors competitors) {
  if (impl_->group_boosters.competitors() == competitors) return;
  impl_->group_boosters.set_competitors(std::move(competitors));
  ++impl_->surroundings;
}

void Actuator::forget_what_passes() {
  const auto& known = impl_->group_boosters.competitors();
  if (!known || (known->boosted_at_disks.empty() && known->others_at_disks.empty() && known->throttled.empty() &&
                 known->halted.empty()))
    return;
  Competitors rest = *known;
  rest.boosted_at_disks.clear();
  rest.others_at_disks.clear();
  rest.throttled.clear();
  rest.halted.clear();
  set_competitors(std::move(rest));
}

void Actuator::on_outcome(std::function<void(const Outcome&)> listener) { impl_->listener = std::move(listener); }

std::optional<Actuator::Active> Actuator::active(ThreadId thread) const {
  const auto known = impl_->entries.find(thread);
  if (known == impl_->entries.end()) return std::nullopt;
  const Entry& entry = known->second;
  if (!entry.in_force() && entry.reason == Ineffective::none) return std::nullopt;
  const Ineffective limited = entry.in_force() ? entry.limited : Ineffective::none;
  return Active{entry.boost, entry.base, entry.reason, entry.lent, limited, entry.in_force()};
}

Vector<Actuator::Active> Actuator::active() const {
  Vector<Active> all;
  for (const auto& [thread, entry] : impl_->entries)
    if (const auto one = entry.boost.quiet ? std::nullopt : active(thread)) all.push_back(*one);
  return all;
}

Vector<Actuator::Active> Actuator::realtime() const {
  Vector<Active> all;
  for (const auto& [thread, entry] : impl_->entries)
    if (!entry.boost.quiet && entry.in_force() && entry.lent.realtime()) all.push_back(*active(thread));
  return all;
}

bool Actuator::any_active() const {
  return std::ranges::any_of(impl_->entries, [](const auto& one) {
    const Entry& entry = one.second;
    return !entry.boost.quiet && (entry.in_force() || entry.reason != Ineffective::none);
  });
}

std::uint64_t Actuator::total() const { return impl_->total; }

}  // namespace swapd::actuate
