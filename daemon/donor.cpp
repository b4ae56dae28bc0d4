#include "donor.h"

#include <algorithm>

namespace swapd::daemon {

namespace {

constexpr std::size_t most_looks = 32;  // at threads that may have been woken, in one batch
constexpr int explore_rounds = 16;      // depth of a wait tree that one batch may open up
constexpr auto newly_waiting = std::chrono::seconds(1);
constexpr std::size_t most_scanned = 4096;
constexpr std::size_t most_expecting = 1024;  // looked at in one tick
constexpr auto longest_silence = std::chrono::milliseconds(10);

bool same_wait(const decide::Donation& a, const decide::Donation& b) {
  return a.requester == b.requester && a.resource == b.resource && a.path.front() == b.path.front();
}

}  // namespace

Donor::Donor(Settings settings, Members& members, model::Model& model, observe::Observer& observer,
             actuate::Actuator& actuator, Worker& worker, int epoll)
    : settings_(std::move(settings)),
      members_(members),
      model_(model),
      observer_(observer),
      actuator_(actuator),
      worker_(worker),
      epoll_(epoll),
      decider_(settings_.rules) {}

bool Donor::important(const MemberThread& thread) const { return rank(thread.base) > members_.lowest_rank(); }

void Donor::apply(const Event& event) {
  model_.apply(event);
  if (records_ != nullptr) records_->event(event);
}

void Donor::decide(Time now) {
  const std::vector<ThreadId> requesters(waiting_.begin(), waiting_.end());
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

void Donor::take(const Event& event) {
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
  if (const auto* woken = std::get_if<Woken>(&event)) learn_whom_to_expect(*woken);
  apply(event);
  if (const auto* blocked = std::get_if<Blocked>(&event)) {
    newly_blocked_.push_back(blocked->thread);
    const MemberThread* member = members_.thread(blocked->thread);
    if (member != nullptr && important(*member) && !blocked->awaited.empty())
      waiting_.insert(blocked->thread);
    else if (waiting_.contains(blocked->thread) && blocked->awaited.empty())
      wait_ended(blocked->thread);
  } else if (const auto* woken = std::get_if<Woken>(&event)) {
    if (waiting_.contains(woken->thread)) wait_ended(woken->thread);
  } else if (std::holds_alternative<Enrolled>(event)) {
    ranks_changed_ = true;
  }
}

// Where one thread alone can end a wait, and does, nothing is to be learnt from the next one, nor to be done as long as
// that thread has a CPU. Where there is a choice, the same once its confidence cannot rise further.
void Donor::learn_whom_to_expect(const Woken& woken) {
  const auto found = watched_.find(woken.thread);
  if (found == watched_.end()) return;
  const ThreadId by = woken.by && !woken.unrelated ? *woken.by : ThreadId{};
  if (by == found->second.expected) return;
  ThreadId expected;
  const auto view = by.valid() ? model_.thread(woken.thread) : std::nullopt;
  if (view && view->state == model::RunState::blocked) {
    for (const Resource& resource : view->awaited) {
      const auto providers = model_.providers(resource, woken.thread);
      const auto provider = std::ranges::find(providers, by, &model::ProviderView::thread);
      if (provider == providers.end()) continue;
      const auto& settings = model_.settings().kinds.at(static_cast<std::size_t>(resource.kind));
      if (providers.size() == 1 || provider->confidence >= 2 * settings.base_confidence) expected = by;
    }
  }
  if (expected == found->second.expected) return;
  if (!found->second.expected.valid()) expecting_.push_back(woken.thread);
  found->second.expected = expected;
  observer_.expect(woken.thread, expected);
}

// What was expected may be wrong by now: no wait goes on in silence for long.
void Donor::look_at_silent_waits(Time now) {
  std::erase_if(expecting_, [&](ThreadId thread) {
    const auto watch = watched_.find(thread);
    return watch == watched_.end() || !watch->second.expected.valid();
  });
  std::vector<Event> events;
  for (std::size_t i = 0; i < std::min(expecting_.size(), most_expecting); ++i)
    observer_.look_if_silent(expecting_[next_expecting_++ % expecting_.size()], now - longest_silence, events);
  for (const Event& event : events) take(event);
}

bool Donor::may_watch(ThreadId thread) const {
  const MemberThread* member = members_.thread(thread);
  const MemberProcess* process = member == nullptr ? nullptr : members_.process(member->tgid);
  return process != nullptr && process->managed;
}

void Donor::watch(ThreadId thread, bool is_important, Time now) {
  if (!may_watch(thread)) return;
  const MemberThread* member = members_.thread(thread);
  Watch& watch = watched_[thread];
  watch.last_needed = now;
  if (watch.important || is_important) {
    if (!watch.urgent) observer_.set_urgent(thread, true);
    watch.important = watch.urgent = true;
  } else if (watch.urgent) {
    urgent_.push_back(thread);
  }
  observer_.watch({thread, member->tgid}, watch.important);
}

// Which threads could lend anything? Only those above the lowest managed one.
void Donor::rank_watches(Time now) {
  ranks_changed_ = false;
  for (auto& [id, watch] : watched_) watch.important = false;
  for (const auto& [tid, member] : members_.threads())
    if (important(member)) watch(member.id, true, now);
  std::erase_if(waiting_, [&](ThreadId id) {
    const MemberThread* member = members_.thread(id);
    const bool gone = member == nullptr || !important(*member);
    if (gone) forget_decision(id);
    return gone;
  });
  // A thread that has become important while it was watched as a provider may be waiting already.
  for (const auto& [id, w] : watched_) {
    if (!w.important && w.urgent && std::ranges::find(urgent_, id) == urgent_.end()) urgent_.push_back(id);
    if (!w.important) continue;
    const auto view = model_.thread(id);
    if (view && view->state == model::RunState::blocked && !view->awaited.empty()) waiting_.insert(id);
  }
}

// Marks what the wait trees need. True: some of it is not looked at yet.
bool Donor::unexplored(Time now) {
  bool found = false;
  for (const ThreadId requester : waiting_) {
    for (const ThreadId thread : model_.wait_tree(requester)) {
      const auto watch = watched_.find(thread);
      if (watch == watched_.end()) {
        found = found || may_watch(thread);
        continue;
      }
      watch->second.last_needed = now;
      if (watch->second.urgent) continue;
      watch->second.urgent = true;
      urgent_.push_back(thread);
      observer_.set_urgent(thread, true);
    }
  }
  return found;
}

// Whom nobody waits for any more is heard of with the next batch.
void Donor::calm_the_others(Time now) {
  std::erase_if(urgent_, [&](ThreadId thread) {
    const auto watch = watched_.find(thread);
    if (watch == watched_.end() || watch->second.important) return true;
    if (watch->second.last_needed == now) return false;
    watch->second.urgent = false;
    observer_.set_urgent(thread, false);
    return true;
  });
}

// Looks at every thread that the requester may be waiting for, as deep as the waits go.
void Donor::explore(ThreadId requester, Time now) {
  for (int round = 0; round < explore_rounds; ++round) {
    bool grown = false;
    for (const ThreadId thread : model_.wait_tree(requester)) {
      const auto found = watched_.find(thread);
      if (found != watched_.end()) {
        found->second.last_needed = now;
        continue;
      }
      if (!may_watch(thread)) continue;
      watch(thread, false, now);
      grown = true;
    }
    if (!grown) return;
    scratch_.clear();
    observer_.report_new(now, scratch_);
    const std::vector<Event> batch = std::move(scratch_);
    scratch_ = {};
    for (const Event& event : batch) take(event);
    if (!waiting_.contains(requester)) return;
  }
}

// Whoever a thread that has just blocked waits for may have been woken by its last message and be waiting for a CPU: it
// is runnable, and is favoured, though it has left no record yet.
void Donor::look_again(Time now) {
  for (std::size_t i = 0; i < newly_blocked_.size(); ++i) {
    std::size_t looked = 0;
    for (const ThreadId id : model_.wait_tree(newly_blocked_[i])) {
      const auto view = model_.thread(id);
      if (!view || view->state != model::RunState::blocked || !watched_.contains(id)) continue;
      if (++looked > most_looks) break;
      std::vector<Event> events;
      observer_.look(id, now, events);
      for (const Event& event : events) take(event);
    }
    if (i > most_looks) break;
  }
  newly_blocked_.clear();
}

void Donor::remember_depths() {
  for (const decide::Donation& donation : current_) {
    decide::Donation& deepest = deepest_[donation.requester];
    if (deepest.path.size() <= donation.path.size() || !same_wait(deepest, donation)) deepest = donation;
  }
}

void Donor::ask_for_providers(ThreadId requester, Time now, bool again) {
  std::vector<Resource> wanted = model_.unprovided(requester);
  // Locks change hands without a call that is seen: who holds them is asked anew at each wait and while it lasts.
  std::vector<ThreadId> tree = model_.wait_tree(requester);
  tree.push_back(requester);
  for (const ThreadId id : tree) {
    const auto view = model_.thread(id);
    if (!view) continue;
    for (const Resource& resource : view->awaited) {
      const bool lock = resource.kind == ResourceKind::flock || resource.kind == ResourceKind::record_lock;
      if ((lock || again) && std::ranges::find(wanted, resource) == wanted.end()) wanted.push_back(resource);
    }
    std::vector<Resource> due;
    for (const Resource& resource : view->awaited) {
      if (std::ranges::find(wanted, resource) == wanted.end()) continue;
      const auto scanned = scanned_.find(resource);
      const bool lock = resource.kind == ResourceKind::flock || resource.kind == ResourceKind::record_lock;
      if (scanned != scanned_.end() && scanned->second >= view->since && now - scanned->second < settings_.rescan)
        continue;
      if (!lock && scanned != scanned_.end() && now - scanned->second < settings_.rescan / 10) continue;
      scanned_[resource] = now;
      due.push_back(resource);
    }
    if (again && !due.empty()) observer_.resolve_again(id);
    if (!due.empty()) worker_.ask(ScanQuestion{id, std::move(due), members_.managed_pids()});
  }
  if (scanned_.size() > most_scanned)
    std::erase_if(scanned_, [&](const auto& s) { return now - s.second > settings_.rescan; });
}

void Donor::found(const ScanAnswer& answer, Time now) {
  for (const observe::Found& found : answer.found) {
    if (found.unenrolled.empty())
      unenrolled_.erase(found.resource);
    else
      unenrolled_[found.resource] = found.unenrolled;
    take(Holders{.time = now, .resource = found.resource, .evidence = found.evidence, .threads = found.threads});
  }
  if (unenrolled_.size() > most_scanned) unenrolled_.clear();
}

bool Donor::needs_calls_at_once(Time now) const {
  return std::ranges::any_of(waiting_, [&](ThreadId requester) {
    const auto view = model_.thread(requester);
    if (!view || now - view->since > newly_waiting) return false;
    return std::ranges::any_of(model_.unprovided(requester), [](const Resource& resource) {
      return resource.kind == ResourceKind::sysv_sem || resource.kind == ResourceKind::sysv_msg;
    });
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

bool Donor::above_requester(const decide::Donation& donation) const {
  const MemberThread* requester = members_.thread(donation.requester);
  return requester != nullptr && rank(donation.attr) > rank(requester->base);
}

void Donor::apply_boosts(Time now) {
  std::unordered_map<ThreadId, actuate::Boost> best;
  const auto lend = [&](const decide::Donation& donation) {
    if (donation.refusal != decide::Refusal::none) return;
    for (const ThreadId thread : donation.path) {
      const auto [place, is_new] =
          best.try_emplace(thread, actuate::Boost{thread, donation.requester, donation.resource, donation.attr});
      if (!is_new && rank(donation.attr) > rank(place->second.attr))
        place->second = {thread, donation.requester, donation.resource, donation.attr};
    }
  };
  for (const decide::Donation& donation : current_) lend(donation);
  for (const auto& [requester, lingering] : lingering_) lend(lingering.donation);
  std::vector<actuate::Boost> boosts;
  boosts.reserve(best.size());
  for (const auto& [thread, boost] : best) boosts.push_back(boost);
  actuator_.apply(boosts, now);
}

void Donor::reconcile(Time now) {
  if (ranks_changed_) rank_watches(now);
  const std::vector<ThreadId> open(waiting_.begin(), waiting_.end());
  if (unexplored(now)) {
    // First the help, then the look: to open a watch takes a while, and waits for a thread that is in execve(2).
    decide(now);
    apply_boosts(now);
    for (const ThreadId requester : open) explore(requester, now);
  }
  for (const ThreadId requester : open) {
    if (waiting_.contains(requester)) ask_for_providers(requester, now, false);
  }
  calm_the_others(now);
  look_again(now);
  decide(now);
  for (const decide::Donation& donation : current_) {
    const auto lingering = lingering_.find(donation.requester);
    if (lingering == lingering_.end()) continue;
    // The same wait anew: what lingers of the last one has the way that this one is about to go, if it is the longer.
    const decide::Donation& before = lingering->second.donation;
    if (!same_wait(before, donation) || before.path.size() <= donation.path.size()) end_linger(donation.requester);
  }
  std::vector<ThreadId> moved;
  for (const auto& [requester, lingering] : lingering_) {
    const bool elsewhere = waiting_.contains(requester) &&
                           std::ranges::find(current_, requester, &decide::Donation::requester) == current_.end();
    if (elsewhere || members_.thread(requester) == nullptr) moved.push_back(requester);
  }
  for (const ThreadId requester : moved) end_linger(requester);
  remember_depths();
  arm_lingers(now);
  arm_quanta(now);
  trace_candidates();
  apply_boosts(now);
}

void Donor::tick(Time now) {
  charge_boosts(now);
  look_at_silent_waits(now);
  std::vector<std::uint64_t> late;
  for (auto& [key, timer] : timers_)
    if (timer.use != Timer::Use::idle && now >= timer.wall_end && (!timer.perf || timer.use == Timer::Use::linger))
      late.push_back(key);
  for (const std::uint64_t key : late) {
    Timer& timer = timers_[key];
    if (timer.use == Timer::Use::linger) {
      end_linger(timer.requester);
    } else {
      timer.wall_end = now + timer.period;
      apply(QuantumUsed{.time = now, .requester = timer.requester});
    }
  }
  for (const decide::Donation& donation : std::vector(current_)) {
    if (!above_requester(donation)) continue;
    std::vector<Event> events;
    observer_.look(donation.requester, now, events);
    for (const Event& event : events) take(event);
  }
  for (const ThreadId requester : std::vector<ThreadId>(waiting_.begin(), waiting_.end()))
    ask_for_providers(requester, now, true);
  std::vector<ThreadId> idle;
  for (const auto& [id, w] : watched_)
    if (!w.important && now - w.last_needed > settings_.keep_watch) idle.push_back(id);
  for (const ThreadId id : idle) {
    observer_.untrace_wakes(id);
    observer_.unwatch(id);
    watched_.erase(id);
    drop_timers(id);
  }
}

void Donor::forget(ThreadId thread, bool exited) {
  waiting_.erase(thread);
  forget_decision(thread);
  end_linger(thread);
  std::erase_if(lingering_, [&](const auto& l) {
    return std::ranges::find(l.second.donation.path, thread) != l.second.donation.path.end();
  });
  std::erase_if(current_, [&](const auto& d) { return d.requester == thread; });
  deepest_.erase(thread);
  recent_.erase(thread);
  quantum_timer_.erase(thread);
  drop_timers(thread);
  watched_.erase(thread);
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
