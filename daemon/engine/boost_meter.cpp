#include "engine/boost_meter.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace swapd::daemon {

namespace {

// How long a boost lasts before its thread's state is looked at, and how closely: a round of verdicts takes some two
// milliseconds of the thread's CPU time, at two per cent of it.
constexpr Duration look_after = std::chrono::milliseconds(4);
constexpr Duration look_again = std::chrono::milliseconds(2);
constexpr Duration close_period = std::chrono::microseconds(100);
// Once it is judged, in case that changes.
constexpr Duration calm_look = std::chrono::milliseconds(10);
constexpr Duration calm_period = std::chrono::milliseconds(1);
constexpr std::size_t max_samplers = 16;

}  // namespace

BoostMeter::BoostMeter(const observe::Observer& observer, std::function<void(const decide::Input&)> told)
    : observer_(observer), told_(std::move(told)), opener_(close_period) {}

void BoostMeter::apply(std::span<const decide::Metered> boosts, Time now) {
  ++round_;
  for (const decide::Metered& boost : boosts) {
    const auto [at, is_new] = tracks_.try_emplace(boost.thread);
    Track& track = at->second;
    track.round = round_;
    const bool other = track.boost.on_behalf_of != boost.on_behalf_of || track.boost.counts != boost.counts;
    if (!is_new && other) settle(boost.thread, track, now);
    track.boost = boost;
    if (boost.given_up && track.sampler) calm(track);
    if (!is_new) continue;
    track.since = now;
    if (observer_.counts_cpu()) track.seen = observer_.cpu_time(boost.thread, now);
    next_look_ = std::min(first_look(track), next_look_.value_or(Time::max()));
  }
  for (auto at = tracks_.begin(); at != tracks_.end();) {
    const bool ended = at->second.round != round_;
    if (ended) settle(at->first, at->second, now);
    if (ended) release_sampler(at->first, at->second);
    at = ended ? tracks_.erase(at) : std::next(at);
  }
  if (tracks_.empty()) next_look_.reset();
}

void BoostMeter::settle(ThreadId thread, Track& track, Time now) {
  if (!observer_.counts_cpu()) return;
  const auto used = observer_.cpu_time(thread, now);
  if (used && track.seen && track.boost.counts)
    told_(decide::CpuUsed{now, thread, track.boost.on_behalf_of, *used - *track.seen});
  track.seen = used;
}

void BoostMeter::before(const Event& event) {
  if (tracks_.empty()) return;
  if (const auto* woken = std::get_if<Woken>(&event)) {
    bool boosted = false;
    for (auto& [thread, track] : tracks_) {
      if (track.boost.on_behalf_of != woken->thread) continue;
      settle(thread, track, woken->time);
      boosted = true;
    }
    auto ender = woken->unrelated ? std::nullopt : woken->by;
    if (woken->stranger) ender = ThreadId{};
    if (boosted) told_(decide::WaitEnded{woken->time, woken->thread, ender});
    if (!woken->by || woken->unrelated) return;
    if (const auto by = tracks_.find(*woken->by); by != tracks_.end()) {
      settle(by->first, by->second, woken->time);
      told_(decide::Delivered{woken->time, by->first, false});
    }
  } else if (const auto* blocked = std::get_if<Blocked>(&event)) {
    const auto at = tracks_.find(blocked->thread);
    if (at == tracks_.end()) return;
    settle(blocked->thread, at->second, blocked->time);
    told_(decide::Delivered{blocked->time, blocked->thread, true});
  }
}

void BoostMeter::forget(ThreadId thread) {
  const auto at = tracks_.find(thread);
  if (at == tracks_.end()) return;
  release_sampler(thread, at->second);
  tracks_.erase(at);
}

Time BoostMeter::first_look(const Track& track) {
  return track.since + (track.boost.suspected ? Duration::zero() : look_after);
}

Time BoostMeter::next_look(const Track& track, Time now) {
  if (track.has_sampler() && !track.judged) return now + look_again;
  const Time first = first_look(track);
  return !track.has_sampler() && first > now ? first : now + calm_look;
}

void BoostMeter::calm(Track& track) {
  if (!std::exchange(track.judged, true)) track.sampler->set_period(calm_period);
}

void BoostMeter::release_sampler(ThreadId thread, const Track& track) {
  if (track.opening) opener_.drop(thread.tid);
  if (track.has_sampler()) --samplers_;
}

void BoostMeter::take_opened() {
  for (auto& opened : opener_.take()) {
    const auto at = std::ranges::find_if(
        tracks_, [&](const auto& one) { return one.first.tid == opened.tid && one.second.opening; });
    if (at == tracks_.end()) continue;
    Track& track = at->second;
    track.opening = false;
    track.refused = opened.sampler == nullptr;
    track.sampler = std::move(opened.sampler);
    if (track.refused)
      --samplers_;
    else if (track.boost.given_up)
      calm(track);
  }
}

void BoostMeter::sample(ThreadId thread, Track& track, Time now) {
  if (!track.sampler) {
    if (track.opening || track.refused || samplers_ >= max_samplers || now < first_look(track)) return;
    // Withheld for its share of the wait, not for a spin: its state says nothing, and to open costs its CPU a
    // preemption.
    if (track.boost.given_up && !track.boost.suspected) return;
    opener_.ask(thread.tid);
    track.opening = true;
    ++samplers_;
    return;
  }
  scratch_.clear();
  track.sampler->read(scratch_);
  if (!observer_.counts_cpu() && track.boost.counts)
    told_(decide::CpuUsed{now, thread, track.boost.on_behalf_of,
                          (track.judged ? calm_period : close_period) * static_cast<Duration::rep>(scratch_.size())});
  for (const sys::StateSample& one : scratch_) track.judge.add(one.state, one.in_user);
  const auto verdict = track.judge.verdict();
  if (verdict == decide::SpinJudge::Verdict::unknown) return;
  told_(decide::Judged{now, thread, verdict});
  track.judge.clear();
  if (verdict == decide::SpinJudge::Verdict::computes) calm(track);
}

void BoostMeter::look(Time now) {
  if (!next_look_ || now < *next_look_) return;
  next_look_.reset();
  take_opened();
  for (auto& [thread, track] : tracks_) {
    settle(thread, track, now);
    sample(thread, track, now);
    next_look_ = std::min(next_look(track, now), next_look_.value_or(Time::max()));
  }
}

}  // namespace swapd::daemon
