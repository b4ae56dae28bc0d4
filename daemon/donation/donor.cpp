#include "donation/donor.h"

#include <algorithm>
#include <utility>

#include "donation/progress_monitor.h"
#include "donation/wrong_evidence.h"

namespace swapd::daemon {

namespace {

constexpr auto newly_waiting = std::chrono::seconds(1);

}  // namespace

bool Donor::same_wait(const decide::Donation& a, const decide::Donation& b) {
  return a.requester == b.requester && a.resource == b.resource && a.path.front() == b.path.front();
}

Donor::Donor(Settings settings, model::ManagedSet& members, model::Model& model, observe::Observer& observer,
             actuate::Actuator& actuator, Worker& worker, sys::EventLoop& loop)
    : settings_(std::move(settings)),
      members_(members),
      model_(model),
      observer_(observer),
      actuator_(actuator),
      worker_(worker),
      loop_(loop),
      decider_(settings_.rules),
      progress_(std::make_unique<ProgressMonitor>(model_, observer_)),
      wrong_evidence_(settings_.wrong_provider.empty()
                          ? nullptr
                          : std::make_unique<WrongEvidence>(members_, settings_.wrong_provider)) {}

Donor::~Donor() = default;

bool Donor::important(const model::ManagedThread& thread) const { return rank(thread.base) > members_.lowest_rank(); }

void Donor::apply(const Event& event) {
  model_.apply(event);
  if (records_ != nullptr) records_->event(event);
}

void Donor::decide(Time now) {
  const std::vector<ThreadId> requesters(active_.begin(), active_.end());
  current_ = decider_.decide(model_, requesters, now);
  if (records_ != nullptr) records_->decided(requesters, current_, now);
}

void Donor::forget_decision(ThreadId requester) {
  decider_.forget(requester);
  if (records_ != nullptr) records_->forgotten(requester);
}

std::unique_ptr<RecordRing::Opening> Donor::opening(Time now) const {
  auto opening = std::make_unique<RecordRing::Opening>();
  opening->settings = model_.settings();
  opening->rules = settings_.rules;
  opening->snapshot = {now, model_.image(), decider_.image()};
  return opening;
}

void Donor::take(const Event& seen) {
  const std::optional<Event> wrong = wrong_evidence_ ? wrong_evidence_->instead_of(seen) : std::nullopt;
  const Event& event = wrong ? *wrong : seen;
  if (const auto* blocked = std::get_if<Blocked>(&event); blocked != nullptr && runnable_ && runnable_(*blocked))
    return take(Woken{.time = blocked->time, .thread = blocked->thread, .unrelated = true});
  if (const auto* access = std::get_if<Accessed>(&event); access != nullptr && access->evidence == Evidence::sent_to) {
    // A hint: it names a provider where none is known, and orders those that are. It does not add to a list that scans
    // made.
    const auto known = model_.providers(access->resource, std::nullopt);
    const bool listed = std::ranges::any_of(known, [&](const auto& p) { return p.thread == access->thread; });
    const bool alone = std::ranges::all_of(known, [&](const auto& p) {
      const auto waiter = model_.thread(p.thread);
      return waiter && waiter->state == model::RunState::blocked && waiting_.contains(p.thread);
    });
    if (!listed && !alone) return;
  }
  progress_->take(seen);
  if (const auto* woken = std::get_if<Woken>(&event)) learn_whom_to_expect(*woken);
  if (const auto* blocked = std::get_if<Blocked>(&event)) keep_while_it_moves(*blocked);
  if (const auto* exited = std::get_if<Exited>(&event)) {  // after it nobody knows what it provided
    touch(event);
    look_for_another(exited->thread);
  }
  apply(event);
  if (const auto* blocked = std::get_if<Blocked>(&event)) {
    newly_blocked_.push_back(blocked->thread);
    const model::ManagedThread* member = members_.thread(blocked->thread);
    if (member != nullptr && important(*member) && !blocked->awaited.empty())
      begin_wait(blocked->thread);
    else if (waiting_.contains(blocked->thread) && blocked->awaited.empty())
      wait_ended(blocked->thread);
  } else if (const auto* woken = std::get_if<Woken>(&event)) {
    if (waiting_.contains(woken->thread)) wait_ended(woken->thread);
  } else if (const auto* enrolled = std::get_if<Enrolled>(&event)) {
    enrolled_.push_back(enrolled->thread);
  }
  touch(event);
}

// What a wait awaits has become something else, as when its connection was accepted: until somebody is known to provide
// that, the help goes on.
void Donor::keep_while_it_moves(const Blocked& blocked) {
  const auto before = std::ranges::find(current_, blocked.thread, &decide::Donation::requester);
  if (before == current_.end() || before->refusal != decide::Refusal::none) return;
  const auto view = model_.thread(blocked.thread);
  if (!view || view->state != model::RunState::blocked || view->since != blocked.time) return;
  if (blocked.awaited.empty() || std::ranges::find(blocked.awaited, before->resource) != blocked.awaited.end()) return;
  end_linger(blocked.thread);
  lingering_[blocked.thread] = {.donation = *before, .moved = true};
}

void Donor::begin_wait(ThreadId requester) {
  waiting_.insert(requester);
  active_.insert(requester);
  const auto view = model_.thread(requester);
  if (!view) return;
  if (std::ranges::any_of(view->awaited, is_sysv, &Resource::kind)) sysv_waits_.push_back({requester, view->since});
}

bool Donor::waits_for(ThreadId requester, const Resource& resource) const {
  const auto view = model_.thread(requester);
  return view && view->state == model::RunState::blocked &&
         std::ranges::find(view->awaited, resource) != view->awaited.end();
}

// Whoever waits for what has changed must be decided anew.
void Donor::touch(const Event& event) {
  if (waiting_.empty()) return;
  for (const ThreadId waiter : model_.concerned_by(event))
    if (waiting_.contains(waiter)) active_.insert(waiter);
}

void Donor::remember_depths() {
  for (const decide::Donation& donation : current_) {
    decide::Donation& deepest = deepest_[donation.requester];
    if (deepest.path.size() <= donation.path.size() || !same_wait(deepest, donation)) deepest = donation;
  }
}

// The deeper ones of a chain have delivered, and their requester is not at its end yet: where it keeps coming back, the
// next request finds the whole way open. So it is where all of them seem to sleep, because not all are seen as of the
// same moment.
void Donor::linger_on_the_way_back() {
  const auto keep = [&](ThreadId requester, const decide::Donation& deepest) {
    if (deepest.refusal == decide::Refusal::none && !lingering_.contains(requester) && may_linger(deepest))
      lingering_[requester] = {.donation = deepest};
  };
  for (const decide::Donation& donation : current_) {
    const auto deepest = deepest_.find(donation.requester);
    if (deepest == deepest_.end() || donation.refusal != decide::Refusal::none) continue;
    if (deepest->second.path.size() > donation.path.size()) keep(donation.requester, deepest->second);
  }
  for (const auto& [requester, deepest] : deepest_)
    if (!active_.contains(requester) && waits_for(requester, deepest.resource)) keep(requester, deepest);
}

bool Donor::chain_is_open() const {
  const auto open = [&](ThreadId requester) {
    const auto lingering = lingering_.find(requester);
    return lingering != lingering_.end() && lingering->second.donation.path.size() > 2 &&
           !above_requester(lingering->second.donation);
  };
  return !waiting_.empty() && std::ranges::all_of(waiting_, open);
}

bool Donor::needs_calls_at_once(Time now) {
  std::erase_if(sysv_waits_, [&](const NewWait& wait) {
    const auto view = model_.thread(wait.requester);
    return !view || view->since != wait.since || !waiting_.contains(wait.requester) || now - wait.since > newly_waiting;
  });
  return std::ranges::any_of(sysv_waits_, [&](const NewWait& wait) {
    return std::ranges::any_of(model_.unprovided(wait.requester), is_sysv, &Resource::kind);
  });
}

// Where several could provide, it matters who does. Where the requester is lower than what it lends (a strict policy),
// it matters when: until the donation ends the provider keeps it from running.
void Donor::trace_candidates() {
  const auto trace = [&](ThreadId thread, bool at_once) {
    const auto found = watched_.find(thread);
    if (found == watched_.end() || (at_once ? found->second.traced_at_once : found->second.traced)) return;
    found->second.traced = true;
    found->second.traced_at_once = at_once;
    observer_.trace_wakes(thread, at_once);
  };
  for (const decide::Donation& donation : current_) {
    if (donation.choice)
      for (const model::Candidate& candidate : model_.candidates(donation.requester)) trace(candidate.direct, false);
    if (above_requester(donation)) trace(donation.path.front(), true);
  }
}

ClassId Donor::class_of(ThreadId thread) const {
  const model::ManagedThread* member = members_.thread(thread);
  const model::ManagedProcess* process = member == nullptr ? nullptr : members_.process(member->tgid);
  return process == nullptr ? ClassId{} : process->class_id;
}

SchedAttr Donor::attr_for(const decide::Donation& donation, ClassId requester_class, ClassId provider_class) const {
  if (!donation.attr.realtime() || settings_.rules.of(provider_class).lending.realtime_allowed) return donation.attr;
  const model::ManagedThread* requester = members_.thread(donation.requester);
  if (requester == nullptr) return donation.attr;  // and the donation ends
  return settings_.rules.lend(requester->base, requester_class, provider_class);
}

// Of a real-time donation, where the provider may have none.
std::optional<SchedAttr> Donor::second_best(const decide::Donation& donation) const {
  const model::ManagedThread* requester = members_.thread(donation.requester);
  if (!donation.attr.realtime() || requester == nullptr) return std::nullopt;
  return lent_by(requester->base, {.realtime_allowed = false});
}

bool Donor::above_requester(const decide::Donation& donation) const {
  const model::ManagedThread* requester = members_.thread(donation.requester);
  return requester != nullptr && rank(donation.attr) > rank(requester->base);
}

// What has not helped is taken back by steps.
void Donor::step_down(actuate::Boost& boost, Time now) const {
  const decide::Step step = progress_->step(boost.requester, boost.thread, now);
  boost.withheld = step == decide::Step::none;
  boost.doubted = step == decide::Step::less;
  if (!boost.doubted) return;
  if (boost.second_best)
    boost.attr = *std::exchange(boost.second_best, std::nullopt);
  else
    boost.attr.nice /= 2;
}

void Donor::apply_boosts(Time now) {
  std::unordered_map<ThreadId, actuate::Boost> best;
  // A waiter that may lend nothing just now does not stand before one that may.
  const auto better = [&](const actuate::Boost& one, const actuate::Boost& other) {
    const bool rests = actuator_.rests(one, now);
    if (rests != actuator_.rests(other, now)) return !rests;
    if (rank(one.attr) != rank(other.attr)) return rank(one.attr) > rank(other.attr);
    return one.second_best && other.second_best && rank(*one.second_best) > rank(*other.second_best);
  };
  const auto lend = [&](const decide::Donation& donation) {
    if (donation.refusal != decide::Refusal::none) return;
    const std::uint32_t user = charged_user(donation.requester);
    const ClassId requester_class = class_of(donation.requester);
    for (const ThreadId thread : donation.path) {
      const ClassId provider_class = class_of(thread);
      actuate::Boost boost{.thread = thread,
                           .requester = donation.requester,
                           .resource = donation.resource,
                           .attr = attr_for(donation, requester_class, provider_class),
                           .user = user,
                           .requester_class = requester_class,
                           .provider_class = provider_class,
                           .second_best = second_best(donation)};
      step_down(boost, now);
      const auto [place, is_new] = best.try_emplace(thread, boost);
      if (!is_new && better(boost, place->second)) place->second = boost;
    }
  };
  progress_->follow(paused_ ? std::vector<decide::Donation>{} : current_, now);
  for (const decide::Donation& donation : current_) lend(donation);
  for (const auto& [requester, lingering] : lingering_) lend(lingering.donation);
  std::vector<actuate::Boost> boosts;
  boosts.reserve(best.size());
  if (paused_) best.clear();
  for (const auto& [thread, boost] : best) boosts.push_back(boost);
  settle_charges(best, now);
  time_loans(best);
  actuator_.apply(boosts, now);
  begin_charges(best, now);
  if (settings_.quota) follow_user_loans(boosts, now);
}

void Donor::reconcile(Time now) {
  if (ranks_changed_ || !enrolled_.empty() || members_.lowest_rank() != ranked_lowest_) rank_watches(now);
  std::vector<ThreadId> helped;
  for (const decide::Donation& donation : current_) helped.push_back(donation.requester);
  // A look may tell of further waits.
  std::unordered_set<ThreadId> seen;
  for (;;) {
    std::vector<ThreadId> open;
    for (const ThreadId requester : active_)
      if (seen.insert(requester).second) open.push_back(requester);
    if (open.empty()) break;
    if (unexplored(open, now)) {
      // First the help, then the look: to open a watch takes a while, and waits for a thread that is in execve(2).
      decide(now);
      apply_boosts(now);
      for (const ThreadId requester : open) explore(requester, now);
    }
    for (const ThreadId requester : open) {
      if (waiting_.contains(requester)) ask_for_providers(requester, now, Ask::now);
    }
    look_again(now);
  }
  newly_blocked_.clear();
  decide(now);
  // Who lends nothing now is left alone until something changes that it waits for.
  active_.clear();
  for (const decide::Donation& donation : current_) active_.insert(donation.requester);
  for (const ThreadId requester : helped)
    if (!active_.contains(requester) && waiting_.contains(requester)) ask_for_another(requester, now);
  for (const decide::Donation& donation : current_) {
    const auto lingering = lingering_.find(donation.requester);
    if (lingering == lingering_.end()) continue;
    // The same wait anew: what lingers of the last one has the way that this one is about to go, if it is the longer.
    const decide::Donation& before = lingering->second.donation;
    if (!same_wait(before, donation) || before.path.size() <= donation.path.size()) end_linger(donation.requester);
  }
  std::vector<ThreadId> ended;
  for (const auto& [requester, lingering] : lingering_) {
    const bool elsewhere = waiting_.contains(requester) && !active_.contains(requester) &&
                           !waits_for(requester, lingering.donation.resource);
    const bool moves = lingering.moved && !model_.unprovided(requester).empty();
    if ((elsewhere && !moves) || members_.thread(requester) == nullptr) ended.push_back(requester);
  }
  for (const ThreadId requester : ended) end_linger(requester);
  remember_depths();
  linger_on_the_way_back();
  arm_lingers(now);
  arm_quanta(now);
  trace_candidates();
  apply_boosts(now);
}

void Donor::tick(Time now) {
  charge_boosts(now);
  charge_user_loans(now);
  look_at_silent_waits(now);
  std::vector<std::uint64_t> late;
  for (auto& [key, timer] : timers_)
    if (timer.on && now >= timer.wall_end && (timer.use == Timer::Use::linger || !counted(timer))) late.push_back(key);
  for (const std::uint64_t key : late) expire(key, now);
  for (const decide::Donation& donation : std::vector(current_)) {
    if (!above_requester(donation)) continue;
    std::vector<Event> events;
    observer_.look(donation.requester, now, events);
    for (const Event& event : events) take(event);
  }
  look_after_waits(now);
  calm_the_others(now);
  unwatch_idle(now);
}

bool Donor::rests() const {
  return waiting_.empty() && expecting_.empty() && current_.empty() && lingering_.empty() && charged_.empty() &&
         timed_.empty() && user_loans_.empty() && actuator_.active().empty() &&
         std::ranges::none_of(timers_, [](const auto& timer) { return timer.second.on; });
}

void Donor::forget(ThreadId thread, bool exited) {
  stop_waiting(thread);
  const auto passes = [&](const decide::Donation& d) { return std::ranges::find(d.path, thread) != d.path.end(); };
  std::vector<ThreadId> lingers{thread};
  for (const auto& [requester, lingering] : lingering_)
    if (passes(lingering.donation)) lingers.push_back(requester);
  for (const ThreadId requester : lingers) end_linger(requester);
  std::erase_if(deepest_, [&](const auto& d) { return d.first == thread || passes(d.second); });
  std::erase_if(current_, [&](const auto& d) { return d.requester == thread; });
  recent_.erase(thread);
  drop_timers(thread);
  watched_.erase(thread);
  progress_->forget(thread);
  charged_.erase(thread);
  timed_.erase(thread);
  observer_.forget(thread);
  for (const ThreadId waiter : expecting_) {
    const auto watch = watched_.find(waiter);
    if (watch == watched_.end() || watch->second.expected != thread) continue;
    watch->second.expected = {};
    observer_.expect(waiter, {});
  }
  if (exited) actuator_.forget(thread);
}

}  // namespace swapd::daemon
