#include "replay/replayer.h"

#include <algorithm>
#include <utility>

namespace swapd::replay {

void Replayer::apply(const Record& record, std::uint64_t line) {
  std::visit([&](const auto& one) { on(one, line); }, record);
}

// The deciders are made anew: a recording goes on after a gap with the state that they had then.
void Replayer::on(const Snapshot& snapshot, std::uint64_t line) {
  ++totals_.snapshots;
  totals_.last = snapshot.time;
  model_.restore(snapshot.model);
  auto donation = std::make_unique<decide::DonationDecider>(donation_config_);
  donation_ = donation.get();
  std::vector<std::unique_ptr<decide::Decider>> deciders;
  deciders.push_back(std::move(donation));
  deciders.push_back(std::make_unique<decide::AutoLimitDecider>());
  deciders.push_back(std::make_unique<decide::CoschedulingDecider>(coscheduling_config_));
  deciders.push_back(std::make_unique<decide::LevelsDecider>(levels_config_));
  deciders.push_back(std::make_unique<decide::MemoryDecider>(memory_config_));
  panel_ = std::make_unique<decide::Panel>(model_, budgets_, std::move(deciders));
  unsaid_.reset();
  live_.reset();
  // A state that does not fit is of another version of the code: what follows would differ anyway.
  if (!panel_->restore(snapshot.deciders)) differ(line, {.time = snapshot.time}, {.time = snapshot.time});
}

void Replayer::on(const Event& event, std::uint64_t) {
  ++totals_.events;
  if (panel_) panel_->feed(event);
}

void Replayer::on(const decide::Input& input, std::uint64_t) {
  if (panel_) panel_->on(input);
}

void Replayer::on(const Left& left, std::uint64_t) {
  if (panel_) panel_->forget(left.thread);
}

void Replayer::on(const decide::Turn& turn, std::uint64_t line) {
  if (!panel_) return;
  compare_unsaid(line);
  totals_.last = std::max(totals_.last, turn.now);
  if (!panel_->decide(turn).new_demands) return;
  unsaid_ = turn.now;
  tell(turn.now, donation_->donations());
}

void Replayer::on(const Granted& live, std::uint64_t line) {
  ++totals_.decisions;
  unsaid_.reset();
  compare(line, live);
  live_ = live;
}

// The replay demanded anew where the live run did not: the same as before, then.
void Replayer::compare_unsaid(std::uint64_t line) {
  if (!std::exchange(unsaid_, std::nullopt) || !live_) return;
  compare(line, *live_);
}

void Replayer::compare(std::uint64_t line, const Granted& live) {
  if (!panel_) return;
  const auto grants = panel_->grants();
  if (std::ranges::equal(grants, live.grants) && panel_->limits() == live.limits &&
      std::ranges::equal(panel_->away(), live.away))
    return;
  differ(line, live,
         {live.time, {grants.begin(), grants.end()}, panel_->limits(), {panel_->away().begin(), panel_->away().end()}});
}

void Replayer::differ(std::uint64_t line, const Granted& live, Granted replayed) {
  ++totals_.differing;
  if (!difference_) difference_ = {line, live.time, live, std::move(replayed)};
}

void Replayer::on(const Gap& gap, std::uint64_t) {
  ++totals_.gaps;
  totals_.lost += gap.lost;
}

void Replayer::tell(Time time, const Vector<decide::Donation>& donations) {
  std::erase_if(lending_, [&](const auto& before) {
    const bool still = std::ranges::find(donations, before.first, &decide::Donation::requester) != donations.end();
    if (!still) on_change_({time, before.first, nullptr});
    return !still;
  });
  for (const decide::Donation& donation : donations) {
    const auto [place, is_new] = lending_.try_emplace(donation.requester, donation);
    if (!is_new && place->second == donation) continue;
    place->second = donation;
    ++totals_.donations;
    on_change_({time, donation.requester, &donation});
  }
}

}  // namespace swapd::replay
