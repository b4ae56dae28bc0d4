#include "decide/donation/linger.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {

namespace {
constexpr Duration min_moved = std::chrono::milliseconds(20);
}  // namespace

bool Linger::same_wait(const Donation& a, const Donation& b) {
  return a.requester == b.requester && a.resource == b.resource && a.path.front() == b.path.front();
}

bool Linger::comes_back(const Donation& donation) const {
  const auto recent = recent_.find(donation.requester);
  if (recent == recent_.end() || config_.time(donation.requester) <= Duration::zero()) return false;
  const auto holds = [](const auto& last, const auto& one) { return std::ranges::find(last, one) != last.end(); };
  return holds(recent->second.resources, donation.resource) || holds(recent->second.providers, donation.path.front());
}

void Linger::renew(const Vector<Donation>& current) {
  for (const Donation& donation : current) {
    const auto lingering = lingering_.find(donation.requester);
    if (lingering != lingering_.end()) {
      const Donation& before = lingering->second.donation;
      if (!same_wait(before, donation) || before.path.size() <= donation.path.size()) end(donation.requester);
    }
  }
  for (const Donation& donation : current) {
    Donation& deepest = deepest_[donation.requester];
    if (deepest.path.size() <= donation.path.size() || !same_wait(deepest, donation)) deepest = donation;
  }
}

void Linger::wait_ended(ThreadId requester, std::optional<ThreadId> by) {
  end_donation(requester);
  if (by && by->valid()) note_provider(recent_[requester], *by);
}

void Linger::note_provider(Recent& recent, ThreadId provider) {
  if (std::ranges::find(recent.providers, provider) == recent.providers.end())
    recent.providers[recent.next_provider++ % recent.providers.size()] = provider;
}

void Linger::end_donation(ThreadId requester) {
  const auto found = deepest_.find(requester);
  if (found == deepest_.end()) return;
  const Donation donation = std::move(found->second);
  deepest_.erase(found);
  if (donation.refusal != Refusal::none) return;
  const bool lingers = comes_back(donation);
  Recent& recent = recent_[requester];
  if (std::ranges::find(recent.resources, donation.resource) == recent.resources.end())
    recent.resources[recent.next++ % recent.resources.size()] = donation.resource;
  note_provider(recent, donation.path.front());
  if (!lingers) return;
  // One that has hardly begun, or was broken off, takes nothing from the way that the last one opened.
  if (const Lingering* before = of(requester);
      before != nullptr && same_wait(before->donation, donation) && before->donation.path.size() > donation.path.size())
    return;
  lingering_[requester] = {.donation = donation};
}

void Linger::moved(const Donation& before) { lingering_[before.requester] = {.donation = before, .moved = true}; }

void Linger::keep_ways_open(const Vector<Donation>& current,
                            const std::function<bool(ThreadId, const Resource&)>& waits,
                            const std::function<bool(ThreadId)>& open) {
  const auto keep = [&](ThreadId requester, const Donation& deepest) {
    if (deepest.refusal == Refusal::none && !lingering_.contains(requester) && comes_back(deepest))
      lingering_[requester] = {.donation = deepest};
  };
  for (const Donation& donation : current) {
    const auto deepest = deepest_.find(donation.requester);
    if (deepest == deepest_.end() || donation.refusal != Refusal::none) continue;
    if (deepest->second.path.size() > donation.path.size()) keep(donation.requester, deepest->second);
  }
  // All of them may seem to sleep, because not all are seen as of the same moment.
  for (const auto& [requester, deepest] : deepest_)
    if (!open(requester) && waits(requester, deepest.resource)) keep(requester, deepest);
}

void Linger::end(ThreadId requester) { lingering_.erase(requester); }

void Linger::end_moved(ThreadId requester) {
  if (const Lingering* one = of(requester); one != nullptr && one->moved) end(requester);
}

void Linger::end_if(const std::function<bool(const Lingering&)>& over) {
  std::erase_if(lingering_, [&](const auto& one) { return over(one.second); });
}

void Linger::forget(ThreadId thread) {
  const auto names = [&](const Donation& donation) {
    return donation.requester == thread || std::ranges::find(donation.path, thread) != donation.path.end();
  };
  end_if([&](const Lingering& one) { return names(one.donation); });
  std::erase_if(deepest_, [&](const auto& one) { return names(one.second); });
  recent_.erase(thread);
  for (auto& [requester, recent] : recent_) std::ranges::replace(recent.providers, thread, ThreadId{});
}

const Linger::Lingering* Linger::of(ThreadId requester) const {
  const auto found = lingering_.find(requester);
  return found == lingering_.end() ? nullptr : &found->second;
}

void Linger::arm() {
  for (auto& [requester, one] : lingering_) {
    if (one.serial != 0) continue;
    one.serial = next_serial_++;
    const Duration time = config_.time(requester);
    one.period = std::max(time, one.moved ? min_moved : Duration::zero());
    one.first_half = !one.moved && one.donation.path.size() > 1;
    if (one.first_half) one.period /= 2;
    one.wall = config_.wall;
    one.wall_uncounted = 2 * time;
  }
}

void Linger::add_timers(std::vector<Timer>& out) const {
  for (const auto& [requester, one] : lingering_)
    if (one.serial != 0)
      out.push_back({.kind = Timer::Kind::linger,
                     .requester = requester,
                     .cpu_of = one.donation.path.back(),
                     .period = one.period,
                     .wall = one.wall,
                     .wall_uncounted = one.wall_uncounted,
                     .serial = one.serial});
}

bool Linger::expired(ThreadId requester, const TimerFired& fired, bool& first_half_over) {
  first_half_over = false;
  const auto found = lingering_.find(requester);
  if (found == lingering_.end() || found->second.serial != fired.serial) return true;
  Lingering& one = found->second;
  if (!fired.gone && fired.wall_left > Duration::zero() && std::exchange(one.first_half, false)) {
    first_half_over = true;
    one.wall = one.wall_uncounted = fired.wall_left;
    one.serial = next_serial_++;
    return true;
  }
  // The requester has come back to the same provider: what lingers goes on. The longer such a conversation has lasted,
  // the rarer it is looked at.
  if (!fired.gone && fired.unreported) {
    one.period = std::min(2 * one.period, config_.wall);
    one.wall = one.wall_uncounted = config_.wall;
    one.serial = next_serial_++;
    return true;
  }
  end(requester);
  if (!fired.gone) deepest_.erase(requester);  // in a wait that goes on, the way is as long as it is now
  return false;
}

}  // namespace swapd::decide
