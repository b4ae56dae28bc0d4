#include "decide/donation/donation_decider.h"

#include <algorithm>
#include <utility>

#include "decide/state.h"
#include "model/model.h"

namespace swapd::decide {

namespace {

constexpr std::size_t max_looks = 32;          // at threads that may have been woken, in one batch
constexpr std::size_t min_looked_after = 64;   // waits, in one tick …
constexpr std::size_t ticks_a_round = 25;      // … so that all have their turn in a quarter of a second,
constexpr std::size_t max_looked_after = 128;  // … or when it comes to them: a look takes some 3 µs
constexpr auto newly_waiting = std::chrono::seconds(1);

}  // namespace

DonationDecider::DonationDecider(DonationConfig config)
    : config_(std::move(config)),
      choice_(config_.rules),
      inquiry_(config_.rescan),
      linger_({.time = [this](ThreadId requester) { return config_.rules.of(class_of(requester)).linger; },
               .wall = config_.linger_wall}),
      terms_(config_.rules, roster_, progress_, config_.quota) {}

ClassId DonationDecider::class_of(ThreadId thread) const {
  const Roster::Thread* known = roster_.find(thread);
  return known == nullptr ? ClassId{} : known->class_id;
}

const Donation* DonationDecider::current(ThreadId requester) const {
  const auto found = std::ranges::find(current_, requester, &Donation::requester);
  return found == current_.end() ? nullptr : &*found;
}

bool DonationDecider::waits_for(const model::Model& model, ThreadId requester, const Resource& resource) const {
  const auto view = model.thread(requester);
  return view && view->state == model::RunState::blocked &&
         std::ranges::find(view->awaited, resource) != view->awaited.end();
}

// --- a turn

void DonationDecider::decide(const model::Model& model, const Turn& turn, Plan& plan) {
  if (turn.first) begin_turn(model, turn, plan);
  if (!news_.feedback.empty()) {
    for (const Event& event : news_.feedback) {
      const auto& used = std::get<QuantumUsed>(event);
      if (model.has_choice(used.requester, used.path)) choice_.lapse(used.requester);
    }
    plan.feedback.swap(news_.feedback);
    news_.feedback.clear();
    plan.complete = false;
    plan.keeps_demands = true;
    return;
  }
  for (const ThreadId requester : std::exchange(news_.linger_ended, {}))
    if (const Donation* donation = current(requester))
      plan.looks.push_back({.thread = donation->path.back(), .at = Look::At::unreported, .since = turn.now});
  Vector<ThreadId> open;
  for (const ThreadId requester : active_)
    if (pass_.seen.insert(requester).second) open.push_back(requester);
  pass_.growing.insert(pass_.growing.end(), open.begin(), open.end());
  const bool grown = explore(model, turn.now);
  std::erase_if(open, [this](ThreadId id) { return !waiting_.contains(id); });
  inquiry_.ask_at_begin(model, open, turn.now, plan);
  look_again(model, plan);
  const bool tells = std::ranges::any_of(plan.looks, [](const Look& look) { return look.at != Look::At::awaited; });
  if (!grown && !tells) return settle(model, turn, plan);
  plan.complete = false;
  plan.keeps_demands = !grown;
  if (grown) {
    // First the help, then the look: to open a watch takes a while, and waits for a thread that is in execve(2).
    choose(model);
    demand(model, turn.now, plan);
  }
  attention_.add_interests(plan.interests);
}

void DonationDecider::begin_turn(const model::Model& model, const Turn& turn, Plan& plan) {
  pass_.seen.clear();
  pass_.growing.clear();
  pass_.helped.clear();
  for (const Donation& donation : current_) pass_.helped.push_back(donation.requester);
  if (turn.tick) {
    attention_.look_at_unreported(turn.now, plan.looks);
    look_after_waits(model, turn, plan);
    attention_.calm(turn.now);
    conversation_.end_what_is_over(turn.now);
    keep_conversations_watched(turn.now);
    Vector<ThreadId> unwatched;
    // At least as long as it takes to look after all waits.
    attention_.unwatch_idle(turn.now, std::max(config_.keep_watch, 2 * round_.last), unwatched);
    for (const ThreadId thread : unwatched)
      std::erase_if(quanta_, [&](const auto& one) { return one.first == thread || one.second.provider == thread; });
  }
  rank_threads(model, turn.now);
}

// Finds the threads that could donate anything: only those above the lowest managed one.
void DonationDecider::rank_threads(const model::Model& model, Time now) {
  const Vector<ThreadId> enrolled = std::exchange(news_.enrolled, {});
  const std::pair lowest{roster_.lowest_rank(), roster_.lowest_weight()};
  if (lowest != std::exchange(news_.ranked_lowest, lowest)) {
    for (const auto& [id, thread] : roster_.threads()) rank_thread(id, model, now);
    active_.insert(waiting_.begin(), waiting_.end());
    return;
  }
  for (const ThreadId id : enrolled) rank_thread(id, model, now);
}

void DonationDecider::rank_thread(ThreadId id, const model::Model& model, Time now) {
  const Roster::Thread* thread = roster_.find(id);
  if (thread == nullptr) return;
  if (terms_.is_important(id)) {
    attention_.watch_requester(id, thread->tgid, now);
    // It may be waiting already: watched as a provider until now, or of another rank.
    const auto view = model.thread(id);
    if (view && view->state == model::RunState::blocked && !view->awaited.empty()) begin_wait(id, model);
    return;
  }
  attention_.demote(id);
  if (!waiting_.contains(id)) return;
  stop_waiting(id);
  linger_.forget_way(id);
}

void DonationDecider::look_after_waits(const model::Model& model, const Turn& turn, Plan& plan) {
  if (round_.left.empty()) {
    round_.left.assign(waiting_.begin(), waiting_.end());
    const Time before = std::exchange(round_.begun, turn.now);
    round_.last = before == never ? Duration::zero() : turn.now - before;
  }
  Set<ThreadId> looked_at;  // those of one conversation wait for the same threads
  const std::size_t share = std::clamp(waiting_.size() / ticks_a_round, min_looked_after, max_looked_after);
  for (std::size_t i = 0; i < share && !round_.left.empty();) {
    const ThreadId requester = round_.left.back();
    round_.left.pop_back();
    if (!waiting_.contains(requester)) continue;
    ++i;
    std::size_t looked = 0;
    for (const ThreadId thread : model.wait_tree(requester)) {
      if (!attention_.need(thread, turn.now) && roster_.find(thread) != nullptr) active_.insert(requester);
      // A thread that was woken and has no CPU yet has left no record.
      const auto view = model.thread(thread);
      if (view && view->state == model::RunState::blocked && attention_.watches(thread) && looked++ < max_looks &&
          looked_at.insert(thread).second)
        plan.looks.push_back({.thread = thread});
    }
    if (turn.may_ask || turn.must_ask)
      inquiry_.ask(model, requester, turn.now, turn.may_ask ? Inquiry::Why::lasts : Inquiry::Why::overdue, attention_,
                   plan);
  }
}

// Watches every thread that the requesters may be waiting for. True: there were new ones, and what they do is not known
// yet.
bool DonationDecider::explore(const model::Model& model, Time now) {
  Vector<ThreadId> requesters = std::exchange(pass_.growing, {});
  std::erase_if(requesters, [this](ThreadId id) { return !waiting_.contains(id); });
  for (const auto& [requester, thread] : model.wait_trees(requesters)) {
    if (attention_.need(thread, now)) continue;
    const Roster::Thread* known = roster_.find(thread);
    if (known == nullptr) continue;
    attention_.watch_provider(thread, known->tgid, now);
    if (pass_.growing.empty() || pass_.growing.back() != requester) pass_.growing.push_back(requester);
  }
  return !pass_.growing.empty();
}

// A provider may be runnable already: the message that the requester sent before it blocked woke the provider, which
// has had no CPU and so has left no record. It is looked at again.
void DonationDecider::look_again(const model::Model& model, Plan& plan) {
  const Vector<ThreadId> blocked = std::exchange(news_.blocked, {});
  for (std::size_t i = 0; i < std::min(blocked.size(), max_looks + 1); ++i) {
    const auto waiter = model.thread(blocked[i]);
    if (!waiter) continue;
    Vector<ThreadId> direct;
    for (const Resource& resource : waiter->awaited)
      for (const model::ProviderView& provider : model.providers(resource, std::nullopt))
        if (std::ranges::find(direct, provider.thread) == direct.end()) direct.push_back(provider.thread);
    std::size_t looked = 0;
    for (const ThreadId id : direct) {
      const auto view = model.thread(id);
      if (!view || view->state != model::RunState::blocked || !attention_.watches(id)) continue;
      if (++looked > max_looks) break;
      plan.looks.push_back({.thread = id});
    }
  }
}

void DonationDecider::choose(const model::Model& model) {
  current_ = choice_.decide(model, Vector<ThreadId>(active_.begin(), active_.end()));
}

// Nothing more is to be learnt in this turn.
void DonationDecider::settle(const model::Model& model, const Turn& turn, Plan& plan) {
  choose(model);
  // A requester that donates nothing now is left alone until something changes that it waits for.
  active_.clear();
  for (const Donation& donation : current_) active_.insert(donation.requester);
  for (const ThreadId requester : std::exchange(pass_.helped, {}))
    if (!active_.contains(requester) && waiting_.contains(requester))
      inquiry_.ask_for_another(model, requester, turn.now, attention_, plan);
  linger_.renew(current_);
  end_what_lingers_in_vain(model);
  linger_.keep_ways_open(
      current_, [&](ThreadId requester, const Resource& resource) { return waits_for(model, requester, resource); },
      [&](ThreadId requester) { return active_.contains(requester); });
  linger_.arm();
  time_quanta();
  trace_candidates();
  demand(model, turn.now, plan);
  attention_.add_interests(plan.interests);
  plan.idle =
      waiting_.empty() && current_.empty() && linger_.all().empty() && conversation_.empty() && attention_.idle();
  plan.needs_calls = needs_calls(model, turn.now);
  plan.may_batch = whole_chains_are_open();
}

// Finds anew what their threads run as.
void DonationDecider::attend_to_conversations(Time now) {
  const Vector<ThreadId> changed = conversation_.take_changed();
  for (const ThreadId thread : changed)
    if (const Roster::Thread* known = roster_.find(thread);
        known != nullptr && takes_part(thread) && !attention_.keep(thread, now))
      attention_.watch_provider(thread, known->tgid, now);
  for_conversations_.begin();
  if (std::exchange(conversations_stale_, false)) {
    found_.clear();
    terms_.demand(conversation_, decider_name, found_);
    for_conversations_.set_all(found_);
    return;
  }
  for (const ThreadId thread : changed) {
    found_.clear();
    terms_.demand(conversation_, thread, decider_name, found_);
    for_conversations_.set(thread, found_);
  }
}

// Those that answer, or support one that does, wait in their turn: for threads that belong to it.
bool DonationDecider::takes_part(ThreadId thread) const {
  return conversation_.answers_for(thread).valid() || conversation_.supports(thread);
}

void DonationDecider::keep_conversations_watched(Time now) {
  for (const auto* parts : {&conversation_.answering(), &conversation_.supporting()})
    for (const auto& [thread, part] : *parts)
      if (part.joined()) (void)attention_.keep(thread, now);
}

void DonationDecider::end_what_lingers_in_vain(const model::Model& model) {
  linger_.end_if([&](const Linger::Lingering& one) {
    const ThreadId requester = one.donation.requester;
    const bool elsewhere = waiting_.contains(requester) && !active_.contains(requester) &&
                           !waits_for(model, requester, one.donation.resource);
    const bool moves = one.moved && !model.unprovided(requester).empty();
    return (elsewhere && !moves) || roster_.find(requester) == nullptr;
  });
}

void DonationDecider::time_quanta() {
  for (const Donation& donation : current_) {
    if (!donation.choice || donation.refusal != Refusal::none) continue;
    Quantum& quantum = quanta_[donation.requester];
    if (quantum.serial != 0 && quantum.provider == donation.path.back()) continue;
    quantum = {donation.path.back(), donation.quantum, next_serial_++};
  }
}

// If several threads could provide, it matters which one does.
void DonationDecider::trace_candidates() {
  for (const ThreadId provider : choice_.chosen_among()) attention_.trace_wakes(provider);
}

// --- the plan

void DonationDecider::demand(const model::Model& model, Time now, Plan& plan) {
  Set<ThreadId> metered;
  for (const Donation& donation : current_) {
    if (donation.refusal != Refusal::none) continue;
    const auto waiting = model.thread(donation.requester);
    if (!waiting) continue;
    const bool guess = donation.choice && !donation.one_leaf;
    progress_.lent(donation.requester, donation.resource, guess, waiting->since, now);
    const ThreadId leaf = donation.path.back();
    const bool given_up = progress_.step(donation.requester, leaf, now) == Step::none;
    if (given_up) {  // a boost that is withheld neither lingers nor stands
      linger_.forget_way(donation.requester);
      conversation_.leave(leaf, progress_.suspected(leaf) ? ThreadId{} : donation.requester);
    }
    if (!metered.insert(leaf).second) continue;  // it runs for another requester, of a higher rank
    plan.metered.push_back({.thread = leaf,
                            .on_behalf_of = donation.requester,
                            .counts = !given_up,
                            .suspected = progress_.suspected(leaf),
                            .given_up = given_up});
  }
  attend_to_conversations(now);
  alternatives_.begin();
  const auto add = [&](const Donation& donation) {
    terms_.demand(donation, decider_name, now, plan);
    alternatives_.thin(plan.demands);
  };
  for (const Donation& donation : current_) add(donation);
  for (const auto& [requester, lingering] : linger_.all()) add(lingering.donation);
  // With the same slice, so that of the kernel's attributes nothing changes as waits come and go.
  for (Demand& demand : plan.demands)
    if (auto& run = std::get<RunAs>(demand); !run.attr.realtime() && conversation_.answers_for(run.thread).valid())
      run.attr.runtime_ns = Terms::conversation_slice_ns;
  plan.lasting = &for_conversations_;
  give_way(model, plan);
  linger_.add_timers(plan.timers);
  for (const auto& [requester, quantum] : quanta_)
    plan.timers.push_back({.kind = Timer::Kind::quantum,
                           .requester = requester,
                           .cpu_of = quantum.provider,
                           .period = quantum.period,
                           .wall = quantum.period,
                           .wall_uncounted = quantum.period,
                           .serial = quantum.serial});
}

// A provider that has delivered and goes on keeps the thread that it has woken, which has the same priority, from its
// CPU: it goes behind. If the woken thread sleeps again at once, woken in vain, the help goes on, and no lower thread
// got in between.
void DonationDecider::give_way(const model::Model& model, Plan& plan) {
  for (const ThreadId requester : std::exchange(news_.give_way, {})) {
    const Donation* donation = current(requester);
    const Linger::Lingering* lingering = linger_.of(requester);
    if (donation == nullptr || lingering == nullptr) continue;
    for (const ThreadId thread : lingering->donation.path) {
      const auto view = model.thread(thread);
      if (!view || view->state == model::RunState::blocked) continue;
      if (std::ranges::find(donation->path, thread) != donation->path.end()) continue;
      plan.demands.emplace_back(GiveWay{thread, requester});
    }
  }
}

bool DonationDecider::whole_chains_are_open() const {
  const auto open = [&](ThreadId requester) {
    const Linger::Lingering* lingering = linger_.of(requester);
    return lingering != nullptr && lingering->donation.path.size() > 2;
  };
  return !waiting_.empty() && std::ranges::all_of(waiting_, open);
}

// A requester has just begun to wait for what only a call that is still to come can name a provider of.
bool DonationDecider::needs_calls(const model::Model& model, Time now) {
  std::erase_if(sysv_waits_, [&](const NewWait& wait) {
    const auto view = model.thread(wait.requester);
    return !view || view->since != wait.since || !waiting_.contains(wait.requester) || now - wait.since > newly_waiting;
  });
  return std::ranges::any_of(sysv_waits_, [&](const NewWait& wait) {
    return std::ranges::any_of(model.unprovided(wait.requester), is_sysv, &Resource::kind);
  });
}

// --- recordings

template <typename Self, typename Archive>
void DonationDecider::News::state(Self& self, Archive& archive) {
  // Feedback is carried out in the turn that follows; a state is taken between turns.
  archive(self.enrolled, self.blocked, self.give_way, self.linger_ended, self.ranked_lowest);
}

template <typename Self, typename Archive>
void DonationDecider::state(Self& self, Archive& archive) {
  archive(self.roster_, self.choice_, self.attention_, self.inquiry_, self.linger_, self.conversation_, self.progress_,
          self.waiting_, self.active_, self.current_, self.quanta_, self.next_serial_, self.sysv_waits_, self.news_,
          self.round_);
}

// Recordings from before threads had levels have no last part.
void DonationDecider::save(StateWriter& out) const {
  state(*this, out);
  if (const Roster::Ranks ranks = roster_.counted_otherwise(); !ranks.empty()) out(ranks);
}

void DonationDecider::restore(StateReader& in) {
  state(*this, in);
  Roster::Ranks ranks;
  if (in.has_more()) in(ranks);
  roster_.restore(ranks);
  conversations_stale_ = true;
}

}  // namespace swapd::decide
