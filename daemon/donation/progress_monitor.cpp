#include "donation/progress_monitor.h"

#include <algorithm>
#include <utility>

namespace swapd::daemon {

namespace {

// How long a boost lasts before its thread's state is looked at, and how closely: a round of verdicts takes some two
// milliseconds of the thread's CPU time, at two per cent of it.
constexpr auto look_after = std::chrono::milliseconds(4);
constexpr auto look_again = std::chrono::milliseconds(2);
constexpr auto close_period = std::chrono::microseconds(100);
// Once it is judged, in case that changes.
constexpr auto calm_look = std::chrono::milliseconds(10);
constexpr auto calm_period = std::chrono::milliseconds(1);
constexpr std::size_t max_samplers = 16;

}  // namespace

void ProgressMonitor::follow(const std::vector<decide::Donation>& donations, Time now) {
  ++round_;
  for (const decide::Donation& donation : donations) {
    if (donation.refusal != decide::Refusal::none) continue;
    const auto waiting = model_.thread(donation.requester);
    if (!waiting) continue;
    progress_.lent(donation.requester, donation.resource, donation.choice, waiting->since, now);
    const ThreadId leaf = donation.path.back();
    const auto [at, is_new] = tracks_.try_emplace(leaf);
    Track& track = at->second;
    if (track.round == round_) continue;  // it runs for another requester, of a higher rank
    track.round = round_;
    if (!is_new && track.requester != donation.requester) settle(leaf, track, now);
    track.requester = donation.requester;
    if (is_new) {
      track.since = now;
      if (observer_.counts_cpu()) track.seen = observer_.cpu_time(leaf, now);
      next_look_ = std::min(first_look(leaf, track), next_look_.value_or(Time::max()));
    }
    const bool counts = progress_.step(donation.requester, leaf, now) != decide::Step::none;
    if (counts != track.counts) {
      settle(leaf, track, now);
      track.counts = counts;
    }
  }
  for (auto at = tracks_.begin(); at != tracks_.end();) {
    if (at->second.round == round_) {
      ++at;
      continue;
    }
    settle(at->first, at->second, now);
    if (at->second.sampler) --samplers_;
    at = tracks_.erase(at);
  }
  if (tracks_.empty()) next_look_.reset();
}

void ProgressMonitor::settle(ThreadId thread, Track& track, Time now) {
  if (!observer_.counts_cpu()) return;
  const auto used = observer_.cpu_time(thread, now);
  if (used && track.seen && track.counts) progress_.used(track.requester, thread, *used - *track.seen);
  track.seen = used;
}

void ProgressMonitor::take(const Event& event) {
  if (tracks_.empty()) return;
  if (const auto* woken = std::get_if<Woken>(&event)) {
    bool lent = false;
    for (auto& [thread, track] : tracks_) {
      if (track.requester != woken->thread) continue;
      settle(thread, track, woken->time);
      lent = true;
    }
    auto ender = woken->unrelated ? std::nullopt : woken->by;
    if (woken->stranger) ender = ThreadId{};
    if (lent) progress_.ended(woken->thread, ender);
    if (!woken->by || woken->unrelated) return;
    if (const auto by = tracks_.find(*woken->by); by != tracks_.end()) {
      settle(by->first, by->second, woken->time);
      progress_.delivered(by->first);
    }
  } else if (const auto* blocked = std::get_if<Blocked>(&event)) {
    const auto at = tracks_.find(blocked->thread);
    if (at == tracks_.end()) return;
    settle(blocked->thread, at->second, blocked->time);
    progress_.blocked(blocked->thread);
  }
}

void ProgressMonitor::forget(ThreadId thread) {
  progress_.forget(thread);
  const auto at = tracks_.find(thread);
  if (at == tracks_.end()) return;
  if (at->second.sampler) --samplers_;
  tracks_.erase(at);
}

Time ProgressMonitor::first_look(ThreadId thread, const Track& track) const {
  return track.since + (progress_.suspected(thread) ? Duration::zero() : Duration(look_after));
}

Time ProgressMonitor::next_look(ThreadId thread, const Track& track, Time now) const {
  if (track.sampler && !track.judged) return now + look_again;
  const Time first = first_look(thread, track);
  return !track.sampler && first > now ? first : now + calm_look;
}

void ProgressMonitor::sample(ThreadId thread, Track& track, Time now) {
  if (!track.sampler) {
    if (track.refused || samplers_ >= max_samplers || now < first_look(thread, track)) return;
    auto opened = sys::StateSampler::open(thread.tid, close_period);
    track.refused = !opened.ok();
    if (track.refused) return;
    track.sampler = std::move(*opened);
    ++samplers_;
    return;
  }
  scratch_.clear();
  track.sampler->read(scratch_);
  if (!observer_.counts_cpu() && track.counts)
    progress_.used(
        track.requester, thread,
        (track.judged ? Duration(calm_period) : Duration(close_period)) * static_cast<Duration::rep>(scratch_.size()));
  for (const sys::StateSample& one : scratch_) track.judge.add(one.state, one.in_user);
  const auto verdict = track.judge.verdict();
  if (verdict == decide::SpinJudge::Verdict::unknown) return;
  progress_.judged(thread, verdict);
  track.judge.clear();
  const bool settled = verdict == decide::SpinJudge::Verdict::computes ||
                       progress_.step(track.requester, thread, now) == decide::Step::none;
  if (settled && !std::exchange(track.judged, true)) track.sampler->set_period(calm_period);
}

void ProgressMonitor::look(Time now) {
  if (!next_look_ || now < *next_look_) return;
  next_look_.reset();
  for (auto& [thread, track] : tracks_) {
    settle(thread, track, now);
    sample(thread, track, now);
    next_look_ = std::min(next_look(thread, track, now), next_look_.value_or(Time::max()));
  }
}

}  // namespace swapd::daemon
