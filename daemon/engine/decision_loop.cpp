#include "engine/decision_loop.h"

#include <algorithm>
#include <utility>

namespace swapd::daemon {

namespace {
constexpr std::size_t max_unenrolled = 4096;

// schedstat of a thread that has a CPU is as of the last tick: it is exact only of a thread that has none.
std::optional<decide::RunTime> run_time(const sys::Procfs& procfs, ThreadId thread, Time now) {
  const auto used = procfs.cpu_time(thread.tid);
  const auto stat = procfs.stat(thread.tid);
  if (!used || !stat || stat->start_time != thread.start_time) return std::nullopt;
  return decide::RunTime{.time = now, .thread = thread, .cpu = *used, .runnable = stat->state == 'R'};
}

actuate::Boost boost_of(const decide::Grant& grant) {
  const decide::RunAs& run = grant.run;
  return {.thread = run.thread,
          .requester = run.cause.on_behalf_of,
          .resource = run.cause.through,
          .attr = run.attr,
          .user = run.payer.user,
          .requester_class = run.payer.requester_class,
          .provider_class = run.payer.provider_class,
          .second_best = run.second_best,
          .doubted = run.doubted,
          .withheld = run.withheld,
          .lowers = run.lowers,
          .lowers_group = run.lowers_group,
          .slice_only = run.slice_only,
          .stands = run.stands,
          .quiet = run.quiet,
          .ceiling_until = grant.ceiling_until,
          .quota_until = grant.quota_until};
}

void find_boosts(std::span<const decide::Grant> grants, std::vector<actuate::Boost>& boosts) {
  boosts.clear();
  for (const decide::Grant& grant : grants) boosts.push_back(boost_of(grant));
}

// Those of the threads that the last merge weighed, and which of these have none.
void find_changes(const decide::Arbiter& arbiter, std::vector<actuate::Boost>& boosts, std::vector<ThreadId>& over) {
  boosts.clear();
  over.clear();
  for (const ThreadId thread : arbiter.touched()) {
    if (const decide::Grant* grant = decide::find(arbiter.grants(), thread))
      boosts.push_back(boost_of(*grant));
    else
      over.push_back(thread);
  }
}
}  // namespace

DecisionLoop::DecisionLoop(Parts parts, Config config, std::vector<std::unique_ptr<decide::Decider>> deciders)
    : parts_(parts),
      panel_(parts_.model, std::move(config.budgets), std::move(deciders)),
      interests_(parts_.observer),
      exact_(parts_.observer),
      charges_(
          panel_.arbiter().budgets().config(),
          [this](const decide::BudgetUsed& used) {
            if (parts_.records.on()) parts_.records.input(used);
            return panel_.charge(used);
          },
          parts_.actuator, parts_.observer, parts_.model, parts_.procfs, exact_),
      clocks_(parts_.observer, exact_, parts_.loop,
              {.quantum_begins = [this](ThreadId thread, Time now) { charges_.quantum_begins(thread, now); },
               .quantum_ends = [this](ThreadId thread, Time now) { charges_.quantum_ends(thread, now); },
               .rang = [this](const decide::TimerFired& fired) { on(fired); }}),
      meter_(parts_.observer, [this](const decide::Input& input) { on(input); }),
      wrong_evidence_(config.wrong_provider.empty()
                          ? nullptr
                          : std::make_unique<WrongEvidence>(parts_.members, config.wrong_provider)) {
  charges_.use(clocks_);
}

DecisionLoop::~DecisionLoop() = default;

void DecisionLoop::on(const decide::Input& input) {
  if (parts_.records.on()) parts_.records.input(input);
  panel_.on(input);
}

void DecisionLoop::take(const Event& seen) {
  const std::optional<Event> wrong = wrong_evidence_ ? wrong_evidence_->instead_of(seen) : std::nullopt;
  const Event& event = wrong ? *wrong : seen;
  if (const auto* blocked = std::get_if<Blocked>(&event);
      blocked != nullptr && hooks_.runnable && hooks_.runnable(*blocked))
    return take(Woken{.time = blocked->time, .thread = blocked->thread, .unrelated = true});
  if (!panel_.admits(event)) return;
  meter_.before(seen);
  if (parts_.records.on()) parts_.records.event(event);
  panel_.feed(event);
}

void DecisionLoop::found(const ScanAnswer& answer, Time now) {
  for (const observe::Found& found : answer.found) {
    if (found.unenrolled.empty())
      unenrolled_.erase(found.resource);
    else
      unenrolled_[found.resource] = found.unenrolled;
    std::vector<Event> events;
    const bool told = found.unenrolled.empty() || parts_.observer.held_by(found.resource, found.unenrolled, events);
    Holders holders{.time = now, .resource = found.resource, .evidence = found.evidence, .threads = found.threads};
    if (!told && !found.behind.empty()) {
      holders.evidence = Evidence::guess;
      holders.threads.insert(holders.threads.end(), found.behind.begin(), found.behind.end());
    }
    take(holders);
    for (const Event& event : events) take(event);
  }
  if (unenrolled_.size() > max_unenrolled) unenrolled_.clear();
}

void DecisionLoop::forked(ThreadId parent, Time now) { on(decide::Forked{now, parent}); }

void DecisionLoop::forget(ThreadId thread, bool exited) {
  if (parts_.records.on()) parts_.records.left(thread);
  panel_.forget(thread);
  interests_.forget(thread);
  charges_.forget(thread);
  clocks_.forget(thread);
  meter_.forget(thread);
  parts_.observer.forget(thread);
  if (exited) parts_.actuator.forget(thread);
}

void DecisionLoop::run(Time now) {
  decide::Turn turn{.now = now, .first = true, .tick = std::exchange(tick_, false)};
  if (turn.tick) {
    turn.may_ask = parts_.questions.rested(now);
    turn.must_ask = !turn.may_ask && parts_.questions.rested_from_scans(now);
  }
  const auto next = panel_.next();
  const bool is_due = next && *next <= now;
  for (int round = 0; round < max_rounds; ++round) {
    if (parts_.records.on()) parts_.records.turn(turn, panel_.idle() && !is_due);
    const auto answer = panel_.decide(turn);
    turn.first = turn.tick = false;
    if (answer.new_demands) apply_demands(now);
    const bool told = observe(now);
    ask(now);
    if (answer.complete && !told) break;
  }
}

void DecisionLoop::pause(bool paused) {
  paused_ = paused;
  parts_.actuator.want_all();
}

void DecisionLoop::apply_demands(Time now) {
  if (parts_.records.on()) parts_.records.granted(panel_, now);
  if (!paused_) give_way();
  const auto grants = paused_ ? std::span<const decide::Grant>{} : panel_.grants();
  std::vector<decide::Metered>& metered = scratch_.metered;
  metered.clear();
  for (std::size_t i = 0; i < panel_.size() && !paused_; ++i)
    metered.insert(metered.end(), panel_.standing(i).metered.begin(), panel_.standing(i).metered.end());
  charges_.before_apply(grants, now);
  if (paused_ || !parts_.actuator.takes_changes(now)) {
    find_boosts(grants, scratch_.boosts);
    parts_.actuator.apply(scratch_.boosts, now);
  } else {
    find_changes(panel_.arbiter(), scratch_.boosts, scratch_.over);
    parts_.actuator.apply_changes(scratch_.boosts, scratch_.over, now);
  }
  meter_.apply(metered, now);  // it looks in procfs, for which a boost need not wait
  charges_.after_apply(grants, now);
  for (std::size_t i = 0; i < panel_.size(); ++i) clocks_.apply(i, panel_.standing(i).timers, now);
  apply_limits();
  apply_standing();
}

void DecisionLoop::give_way() {
  for (std::size_t i = 0; i < panel_.size(); ++i)
    for (const decide::Demand& demand : panel_.standing(i).demands)
      if (const auto* way = std::get_if<decide::GiveWay>(&demand))
        if (const auto active = parts_.actuator.active(way->thread);
            active && active->boost.requester == way->on_behalf_of)
          (void)parts_.actuator.give_way(way->thread);
}

void DecisionLoop::apply_limits() {
  const decide::Panel::Limits& wanted = panel_.limits();
  if (wanted == in_force_.limits) return;
  if (hooks_.limit_io) {
    for (const auto& [name, bytes] : in_force_.limits)
      if (!wanted.contains(name)) hooks_.limit_io(name, std::nullopt);
    for (const auto& [name, bytes] : wanted)
      if (const auto before = in_force_.limits.find(name); before == in_force_.limits.end() || before->second != bytes)
        hooks_.limit_io(name, bytes);
  }
  in_force_.limits = wanted;
}

// Carries out those wishes that no arbiter weighs.
void DecisionLoop::apply_standing() {
  const std::span<const pid_t> away = paused_ ? std::span<const pid_t>{} : panel_.away();
  if (hooks_.put_away && !std::ranges::equal(away, in_force_.away)) {
    in_force_.away.assign(away.begin(), away.end());
    hooks_.put_away(in_force_.away);
  }
  decide::ShortTurns turns;
  scratch_.called.clear();
  for (std::size_t i = 0; i < panel_.size() && !paused_; ++i) {
    const decide::Plan& standing = panel_.standing(i);
    turns.insert(standing.short_turns.begin(), standing.short_turns.end());
    scratch_.called.insert(scratch_.called.end(), standing.called.begin(), standing.called.end());
  }
  if (hooks_.short_turns && turns != in_force_.short_turns)
    hooks_.short_turns(in_force_.short_turns = std::move(turns));
  if (hooks_.listen) hooks_.listen(scratch_.called);
}

void DecisionLoop::look(const decide::Look& look, Time now, std::vector<Event>& told) {
  switch (look.at) {
    case decide::Look::At::state:
      return parts_.observer.look(look.thread, now, told);
    case decide::Look::At::unreported:
      return parts_.observer.look_if_unreported(look.thread, look.since, told);
    case decide::Look::At::awaited:
      return parts_.observer.resolve_again(look.thread);
    case decide::Look::At::run_time:
      if (const auto seen = run_time(parts_.procfs, look.thread, now)) on(*seen);
      return;
  }
}

// True: something was told, and deciders have to look at it.
bool DecisionLoop::observe(Time now) {
  bool fresh = false;
  for (std::size_t i = 0; i < panel_.size(); ++i) fresh = interests_.apply(i, panel_.plan(i).interests) || fresh;
  std::vector<Event>& told = scratch_.told;
  told.clear();
  for (std::size_t i = 0; i < panel_.size(); ++i)
    for (const decide::Look& one : panel_.plan(i).looks) look(one, now, told);
  if (fresh) parts_.observer.report_new(now, told);
  for (const Event& event : told) take(event);
  return !told.empty();
}

void DecisionLoop::ask(Time now) {
  for (std::size_t i = 0; i < panel_.size(); ++i)
    for (decide::Question& question : panel_.plan(i).questions)
      parts_.questions.ask({.waiter = question.waiter,
                            .resources = std::move(question.resources),
                            .members = parts_.members.managed_pids(),
                            .asked = now,
                            .again = question.again});
}

void DecisionLoop::tell_all(std::span<const decide::TimerFired> fired) {
  for (const decide::TimerFired& one : fired) on(one);
}

void DecisionLoop::tick(Time now) {
  tick_ = true;
  charges_.charge(now);
  charges_.charge_users(now);
  scratch_.fired.clear();
  clocks_.tick(now, scratch_.fired);
  tell_all(scratch_.fired);
}

void DecisionLoop::run_clocks(Time now) {
  if (const auto due = charges_.next(); due && now >= *due) charges_.charge(now);
  meter_.look(now);
  scratch_.fired.clear();
  clocks_.run(now, scratch_.fired);
  tell_all(scratch_.fired);
}

std::optional<Time> DecisionLoop::next() const {
  std::optional<Time> next;
  for (const std::optional<Time> due : {clocks_.next(), charges_.next(), meter_.next(), panel_.next()})
    if (due) next = std::min(*due, next.value_or(Time::max()));
  return next;
}

std::optional<Time> DecisionLoop::punctual_next() const {
  std::optional<Time> next = panel_.punctual_next();
  if (const auto due = charges_.next()) next = std::min(*due, next.value_or(Time::max()));
  return next;
}

bool DecisionLoop::idle() const {
  return panel_.idle() && charges_.idle() && clocks_.idle() && !parts_.actuator.any_active();
}

std::unique_ptr<RecordRing::Opening> DecisionLoop::opening(Time now) const {
  auto opening = std::make_unique<RecordRing::Opening>();
  opening->settings = parts_.model.settings();
  opening->budgets = panel_.arbiter().budgets().config();
  opening->snapshot = {now, parts_.model.image(), panel_.save()};
  return opening;
}

}  // namespace swapd::daemon
