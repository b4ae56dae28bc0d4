#include "decide/levels/levels_decider.h"

#include <utility>

#include "base/calls.h"
#include "decide/state.h"
#include "model/model.h"

namespace swapd::decide {

namespace {

constexpr int most_above = 6;                     // what terminal input is worth
constexpr Duration wall = std::chrono::hours(1);  // a thread that sleeps uses no quantum
constexpr int wall_for_uncounted = 4;             // quanta, where its CPU time cannot be had

bool has_levels(const SchedAttr& attr) { return attr.policy == SchedPolicy::other; }

}  // namespace

// A program in a terminal awaits what holds the master's side; a terminal itself awaits its programs, which is nothing
// that a person does.
Awaited awaited_by(const Blocked& blocked) {
  const bool terminal = std::ranges::any_of(blocked.awaited, [](const Resource& one) {
    return one.kind == ResourceKind::pty && side_of(one) == PtySide::master;
  });
  if (terminal) return writes(blocked.call) ? Awaited::terminal_output : Awaited::terminal_input;
  return blocked.awaited.empty() && uses_file(blocked.call) ? Awaited::disk : Awaited::other;
}

void LevelsDecider::enroll(const Enrolled& enrolled) {
  const ClassLevels& levels = config_.of(enrolled.class_id);
  if (levels.display)
    displays_.add(enrolled.thread);
  else
    displays_.remove(enrolled.thread);
  if (levels.nice == 0 || !has_levels(enrolled.base)) return drop(enrolled.thread);
  const auto [at, is_new] = members_.try_emplace(enrolled.thread);
  Member& member = at->second;
  if (is_new) {
    member.level = ThreadLevel(enrolled.base.nice);
    interests_.push_back(
        {.thread = enrolled.thread, .tgid = enrolled.tgid, .watch = Interest::Watch::requester, .patience = patience});
  } else if (member.base != enrolled.base) {
    member.level.set_nice(enrolled.base.nice);
    changed_ = true;
  }
  member.base = enrolled.base;
  member.class_id = enrolled.class_id;
}

void LevelsDecider::drop(ThreadId thread) {
  if (members_.erase(thread) == 0) return;
  interests_.push_back({.thread = thread});
  changed_ = true;
}

void LevelsDecider::raise(Member& member, Awaited awaited, const Resource& what, Time now) {
  if (!member.level.blocks(awaited, now)) return;
  ++member.serial;
  member.awaited = what;
  changed_ = true;
}

// A display server awaits input, from devices or from those who stand for a person at another machine. Its clients
// await what it makes of that.
Awaited LevelsDecider::awaited(ThreadId thread, Member& member, const Blocked& blocked) {
  member.asked = {};
  if (config_.of(member.class_id).display) return Awaited::terminal_input;
  const Awaited own = awaited_by(blocked);
  if (own == Awaited::terminal_input || displays_.empty()) return own;
  for (const Resource& one : blocked.awaited) {
    if (one.kind != ResourceKind::socket) continue;
    const std::optional<bool> leads = displays_.leads(one);
    if (leads && *leads) return Awaited::terminal_input;
    if (leads || member.asked != Resource{}) continue;
    member.asked = one;
    questions_.push_back({.waiter = thread, .resources = {one}});
  }
  return own;
}

void LevelsDecider::block(const Blocked& blocked) {
  const auto at = members_.find(blocked.thread);
  if (at == members_.end()) return;
  const Awaited awaits = awaited(at->first, at->second, blocked);
  raise(at->second, awaits, blocked.awaited.empty() ? Resource{} : blocked.awaited.front(), blocked.time);
}

// The threads that wait for the socket still are those whose last wait was for it.
void LevelsDecider::take_answer(const Holders& holders) {
  if (!displays_.learn(holders)) return;
  for (auto& [thread, member] : members_)
    if (std::exchange(member.asked, member.asked == holders.resource ? Resource{} : member.asked) == holders.resource)
      raise(member, Awaited::terminal_input, holders.resource, holders.time);
}

void LevelsDecider::after(const Event& event, const model::Model& /*model*/) {
  if (const auto* enrolled = std::get_if<Enrolled>(&event))
    enroll(*enrolled);
  else if (const auto* blocked = std::get_if<Blocked>(&event))
    block(*blocked);
  else if (const auto* holders = std::get_if<Holders>(&event))
    take_answer(*holders);
}

void LevelsDecider::on(const Input& input) {
  const auto* fired = std::get_if<TimerFired>(&input);
  if (fired == nullptr || fired->kind != Timer::Kind::quantum) return;
  const auto at = members_.find(fired->requester);
  if (at == members_.end() || at->second.serial != fired->serial) return;
  Member& member = at->second;
  share_.use(ThreadLevel::quantum(member.level.level()), fired->time);
  member.level.uses_quantum();
  ++member.serial;
  changed_ = true;
}

void LevelsDecider::forget(ThreadId thread) {
  std::erase_if(interests_, [&](const Interest& one) { return one.thread == thread; });
  std::erase_if(questions_, [&](const Question& one) { return one.waiter == thread; });
  displays_.remove(thread);
  if (members_.erase(thread) != 0) changed_ = true;
}

const ThreadLevel* LevelsDecider::level(ThreadId thread) const {
  const auto at = members_.find(thread);
  return at == members_.end() ? nullptr : &at->second.level;
}

SchedAttr LevelsDecider::better(const Member& member, int by) {
  SchedAttr attr = member.base;
  attr.nice = static_cast<std::int8_t>(std::max(member.base.nice - by, -20));
  return attr;
}

void LevelsDecider::rank(ThreadId thread, Member& member, Time now, Plan& plan) const {
  const bool ranked = member.level.interactive();
  if (std::exchange(member.ranked, ranked) == ranked) return;
  plan.feedback.push_back(
      Ranked{now, thread, ranked ? std::optional(better(member, config_.of(member.class_id).nice)) : std::nullopt});
  plan.next = now;  // what it waits for is decided upon with the next turn
}

// A level is worth a nice value or a little less: six levels are five.
void LevelsDecider::demand(ThreadId thread, const Member& member, Plan& plan) const {
  const int by = (member.level.above() * config_.of(member.class_id).nice + most_above - 1) / most_above;
  const Duration period = ThreadLevel::quantum(member.level.level());
  plan.timers.push_back({.kind = Timer::Kind::quantum,
                         .requester = thread,
                         .cpu_of = thread,
                         .period = period,
                         .wall = wall,
                         .wall_uncounted = wall_for_uncounted * period,
                         .serial = member.serial});
  if (by == 0) return;
  RunAs run{.thread = thread,
            .attr = better(member, by),
            .cause = {.by = name(), .on_behalf_of = {}, .through = member.awaited},
            .payer = {.user = 0, .requester_class = member.class_id, .provider_class = member.class_id},
            .second_best = std::nullopt};
  run.attr.runtime_ns = slice_ns;
  run.attr.reset_on_fork = true;
  run.stands = run.quiet = true;
  plan.demands.emplace_back(run);
}

void LevelsDecider::decide(const model::Model& /*model*/, const Turn& turn, Plan& plan) {
  plan.interests = std::exchange(interests_, {});
  plan.questions = std::exchange(questions_, {});
  const bool rests = !share_.lasts(turn.now);
  changed_ = std::exchange(rests_, rests) != rests || changed_;
  if (rests) plan.next = share_.lasts_at(turn.now);
  if (!std::exchange(changed_, false)) {
    plan.keeps_demands = true;
    return;
  }
  for (auto& [thread, member] : members_) {
    if (rests) member.level.sink();
    rank(thread, member, turn.now, plan);
    if (member.level.above() > 0) demand(thread, member, plan);
  }
}

void LevelsDecider::save(StateWriter& out) const { out(members_, displays_, share_, changed_, rests_); }

void LevelsDecider::restore(StateReader& in) { in(members_, displays_, share_, changed_, rests_); }

}  // namespace swapd::decide
