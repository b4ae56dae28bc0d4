// Whom the donor looks at: who is important, what is watched and how closely, who is expected, who is asked for.
#include <algorithm>
#include <utility>

#include "donation/donor.h"

namespace swapd::daemon {

namespace {

constexpr std::size_t max_looks = 32;      // at threads that may have been woken, in one batch
constexpr int explore_rounds = 16;         // depth of a wait tree that one batch may open up
constexpr std::size_t min_scanned = 4096;  // remembered; more where more are waited for
constexpr std::size_t max_unenrolled = 4096;
constexpr std::size_t max_expecting = 1024;                      // looked at in one tick
constexpr auto longest_silence = std::chrono::milliseconds(20);  // it is known to a tick when it began
constexpr std::size_t min_looked_after = 64;                     // waits, in one tick …
constexpr std::size_t ticks_a_round = 25;      // … so that all have their turn in a quarter of a second,
constexpr std::size_t max_looked_after = 128;  // … or when it comes to them: a look takes some 3 µs
constexpr int age_parts = 4;                   // of a wait's age: the pause before it is asked about again …
constexpr auto longest_pause = std::chrono::seconds(5);        // … and at most
constexpr int overdue = 4;                                     // times that pause, where the worker has no rest
constexpr auto stays_urgent = std::chrono::milliseconds(600);  // more than a round

constexpr Duration child_expected = std::chrono::seconds(1);  // how long a child is a new one

}  // namespace

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
      const auto& settings = model_.settings().of(view->class_id, resource.kind);
      if (providers.size() == 1 || provider->confidence >= 2 * settings.base_confidence) expected = by;
    }
  }
  if (expected == found->second.expected) return;
  if (!std::exchange(found->second.listed, true)) expecting_.push_back(woken.thread);
  found->second.expected = expected;
  observer_.expect(woken.thread, expected);
}

void Donor::has_forked(ThreadId parent, Time now) {
  const auto found = watched_.find(parent);
  if (found == watched_.end()) return;
  found->second.forked = now;
  if (!std::exchange(found->second.listed, true)) expecting_.push_back(parent);
}

// What was expected may be wrong by now: no wait goes on in silence for long.
void Donor::look_at_silent_waits(Time now) {
  std::erase_if(expecting_, [&](ThreadId thread) {
    const auto watch = watched_.find(thread);
    if (watch == watched_.end()) return true;
    if (watch->second.expected.valid() || now - watch->second.forked < child_expected) return false;
    watch->second.listed = false;
    observer_.expect(thread, {});
    return true;
  });
  std::vector<Event> events;
  for (std::size_t i = 0; i < std::min(expecting_.size(), max_expecting); ++i)
    observer_.look_if_unreported(expecting_[next_expecting_++ % expecting_.size()], now - longest_silence, events);
  for (const Event& event : events) take(event);
}

bool Donor::may_watch(ThreadId thread) const {
  const model::ManagedThread* member = members_.thread(thread);
  const model::ManagedProcess* process = member == nullptr ? nullptr : members_.process(member->tgid);
  return process != nullptr && process->managed;
}

void Donor::watch(ThreadId thread, bool is_important, Time now) {
  if (!may_watch(thread)) return;
  const model::ManagedThread* member = members_.thread(thread);
  Watch& watch = watched_[thread];
  watch.last_needed = now;
  if (watch.important || is_important) {
    if (!watch.urgent) observer_.set_urgent(thread, true);
    watch.important = watch.urgent = true;
  } else {
    watch_as_other(thread, watch);
  }
  observer_.watch({thread, member->tgid}, watch.important);
}

void Donor::watch_as_other(ThreadId thread, Watch& watch) {
  if (!std::exchange(watch.provides, true)) others_.push_back(thread);
  if (watch.urgent) urgent_.push_back(thread);
}

// Whom no wait tree has needed for a while; at least as long as it takes to look after all waits.
void Donor::unwatch_idle(Time now) {
  const Duration keep = std::max(settings_.keep_watch, 2 * last_round_);
  std::erase_if(others_, [&](ThreadId thread) {
    const auto watch = watched_.find(thread);
    if (watch == watched_.end()) return true;
    if (watch->second.important) {
      watch->second.provides = false;
      return true;
    }
    if (now - watch->second.last_needed <= keep) return false;
    observer_.untrace_wakes(thread);
    observer_.unwatch(thread);
    watched_.erase(watch);
    drop_timers(thread);
    return true;
  });
}

// Which threads could lend anything? Only those above the lowest managed one.
void Donor::rank_watches(Time now) {
  const bool all = ranks_changed_ || members_.lowest_rank() != ranked_lowest_;
  ranks_changed_ = false;
  ranked_lowest_ = members_.lowest_rank();
  const std::vector<ThreadId> enrolled = std::exchange(enrolled_, {});
  if (all) {
    for (const auto& [tid, member] : members_.threads()) rank_one(member, now);
    active_.insert(waiting_.begin(), waiting_.end());
    return;
  }
  for (const ThreadId id : enrolled)
    if (const model::ManagedThread* member = members_.thread(id)) rank_one(*member, now);
}

void Donor::rank_one(const model::ManagedThread& member, Time now) {
  const auto known = watched_.find(member.id);
  if (important(member)) {
    if (known == watched_.end() || !known->second.important) watch(member.id, true, now);
    // It may be waiting already: watched as a provider until now, or of another rank.
    const auto view = model_.thread(member.id);
    if (view && view->state == model::RunState::blocked && !view->awaited.empty()) begin_wait(member.id);
    return;
  }
  if (known != watched_.end() && std::exchange(known->second.important, false))
    watch_as_other(member.id, known->second);
  if (!waiting_.contains(member.id)) return;
  stop_waiting(member.id);
  deepest_.erase(member.id);
}

// Marks what a wait tree needs. True: it is not looked at yet.
bool Donor::need(ThreadId thread, Time now) {
  const auto watch = watched_.find(thread);
  if (watch == watched_.end()) return may_watch(thread);
  watch->second.last_needed = now;
  if (watch->second.urgent) return false;
  watch->second.urgent = true;
  urgent_.push_back(thread);
  observer_.set_urgent(thread, true);
  return false;
}

bool Donor::unexplored(const std::vector<ThreadId>& open, Time now) {
  bool found = false;
  for (const ThreadId requester : open)
    for (const ThreadId thread : model_.wait_tree(requester)) found = need(thread, now) || found;
  return found;
}

// Every wait in its turn: what it needs stays watched, and what it awaits is asked about again.
void Donor::look_after_waits(Time now) {
  if (round_.empty()) {
    round_.assign(waiting_.begin(), waiting_.end());
    last_round_ = now - std::exchange(round_began_, now);
  }
  const std::size_t share = std::clamp(waiting_.size() / ticks_a_round, min_looked_after, max_looked_after);
  const bool rested = worker_.rested(now);
  const bool may_ask = rested || worker_.rested_from_scans(now);
  std::vector<Event> events;
  for (std::size_t i = 0; i < share && !round_.empty();) {
    const ThreadId requester = round_.back();
    round_.pop_back();
    if (!waiting_.contains(requester)) continue;
    ++i;
    std::size_t looked = 0;
    for (const ThreadId thread : model_.wait_tree(requester)) {
      if (need(thread, now)) active_.insert(requester);
      // One that was woken and has no CPU yet has left no record.
      const auto view = model_.thread(thread);
      if (view && view->state == model::RunState::blocked && watched_.contains(thread) && looked++ < max_looks)
        observer_.look(thread, now, events);
    }
    if (may_ask) ask_for_providers(requester, now, rested ? Ask::again : Ask::overdue);
  }
  for (const Event& event : events) take(event);
}

// Whom nobody waits for any more is heard of with the next batch.
void Donor::calm_the_others(Time now) {
  std::erase_if(urgent_, [&](ThreadId thread) {
    const auto watch = watched_.find(thread);
    if (watch == watched_.end() || watch->second.important) return true;
    if (now - watch->second.last_needed < stays_urgent) return false;
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
    std::vector<ThreadId> direct;
    if (const auto waiter = model_.thread(newly_blocked_[i]))
      for (const Resource& resource : waiter->awaited)
        for (const model::ProviderView& provider : model_.providers(resource, std::nullopt))
          if (std::ranges::find(direct, provider.thread) == direct.end()) direct.push_back(provider.thread);
    std::size_t looked = 0;
    for (const ThreadId id : direct) {
      const auto view = model_.thread(id);
      if (!view || view->state != model::RunState::blocked || !watched_.contains(id)) continue;
      if (++looked > max_looks) break;
      std::vector<Event> events;
      observer_.look(id, now, events);
      for (const Event& event : events) take(event);
    }
    if (i > max_looks) break;
  }
  newly_blocked_.clear();
}

// Again: who could provide may have changed without a call that is seen, and so may what it is. Overdue: that has been
// asked long ago, and the worker has other work all the time.
void Donor::ask_for_providers(ThreadId requester, Time now, Ask why) {
  const auto unprovided = why == Ask::now ? model_.unprovided(requester) : std::vector<Resource>{};
  std::vector<ThreadId> tree = model_.wait_tree(requester);
  tree.push_back(requester);
  for (const ThreadId id : tree) {
    const auto view = model_.thread(id);
    if (!view) continue;
    const Duration pause = pause_before_asking(*view, now);
    if (why != Ask::now) {
      const auto watch = watched_.find(id);
      if (watch == watched_.end()) continue;
      const Duration unasked = now - std::max(watch->second.asked, view->since);
      if (unasked < (why == Ask::overdue ? overdue * pause : pause)) continue;
      watch->second.asked = now;
      observer_.resolve_again(id);
    }
    std::vector<Resource> due;
    for (const Resource& resource : view->awaited) {
      // A thread that sleeps until it gets a signal may just have nothing to do; one that others wait for has.
      if (resource.kind == ResourceKind::signal && id == requester) continue;
      if (why == Ask::now && !is_lock(resource.kind) && std::ranges::find(unprovided, resource) == unprovided.end())
        continue;
      const auto scanned = scanned_.find(resource);
      const Duration fresh = why == Ask::now ? pause : settings_.rescan;
      if (scanned != scanned_.end() && scanned->second >= view->since && now - scanned->second < fresh) continue;
      if (scanned != scanned_.end() && !is_lock(resource.kind) && now - scanned->second < settings_.rescan / 10)
        continue;
      scanned_[resource] = now;
      due.push_back(resource);
    }
    if (!due.empty()) worker_.ask(ScanQuestion{id, std::move(due), members_.managed_pids(), now, why != Ask::now});
  }
  if (scanned_.size() <= max_scanned_) return;
  std::erase_if(scanned_, [&](const auto& s) { return now - s.second > longest_pause; });
  max_scanned_ = std::max(min_scanned, 2 * scanned_.size());
}

// Who waits for what only this one provided waits for somebody else now, and not for the next look of its turn.
void Donor::look_for_another(ThreadId provider) {
  for (const ThreadId waiter : model_.waiters_on(provider))
    if (const auto view = model_.thread(waiter))
      for (const Resource& resource : view->awaited) scanned_.erase(resource);
}

// Whoever was lent to waits itself by now, for nobody, and the wait goes on: it may have passed on what is waited for.
// (A server that has accepted a connection and left it to a child.) Not so often that a provider that waits for its
// disk again and again keeps the worker busy.
void Donor::ask_for_another(ThreadId requester, Time now) {
  const auto watch = watched_.find(requester);
  const auto view = model_.thread(requester);
  if (watch == watched_.end() || !view || now - watch->second.asked < settings_.rescan / 5) return;
  watch->second.asked = now;
  observer_.resolve_again(requester);
  for (const Resource& resource : view->awaited) scanned_[resource] = now;
  worker_.ask(ScanQuestion{requester, {view->awaited.begin(), view->awaited.end()}, members_.managed_pids(), now});
}

// Locks change hands without a call that is seen: who holds them is asked anew at each wait and while it lasts. Of
// others less is to be expected the longer they have lasted.
Duration Donor::pause_before_asking(const model::ThreadView& waiter, Time now) const {
  if (std::ranges::any_of(waiter.awaited, is_lock, &Resource::kind)) return settings_.rescan;
  return std::max(settings_.rescan, std::min<Duration>((now - waiter.since) / age_parts, longest_pause));
}

void Donor::found(const ScanAnswer& answer, Time now) {
  for (const observe::Found& found : answer.found) {
    if (found.unenrolled.empty())
      unenrolled_.erase(found.resource);
    else
      unenrolled_[found.resource] = found.unenrolled;
    take(Holders{.time = now, .resource = found.resource, .evidence = found.evidence, .threads = found.threads});
    if (found.unenrolled.empty()) continue;
    std::vector<Event> events;
    observer_.held_by(found.resource, found.unenrolled, events);
    for (const Event& event : events) take(event);
  }
  if (unenrolled_.size() > max_unenrolled) unenrolled_.clear();
}

}  // namespace swapd::daemon
