#include "replay/replayer.h"

#include <algorithm>

namespace swapd::replay {

void Replayer::apply(const Record& record, std::uint64_t line) {
  std::visit([&](const auto& one) { on(one, line); }, record);
}

void Replayer::on(const Snapshot& snapshot, std::uint64_t) {
  ++totals_.snapshots;
  totals_.last = snapshot.time;
  model_.restore(snapshot.model);
  decider_.restore(snapshot.kept);
}

void Replayer::on(const Event& event, std::uint64_t) {
  ++totals_.events;
  model_.apply(event);
}

void Replayer::on(const Decided& decided, std::uint64_t line) {
  ++totals_.decisions;
  totals_.last = std::max(totals_.last, decided.time);
  std::vector<decide::Donation> donations = decider_.decide(model_, decided.requesters, decided.time);
  tell(decided.time, donations);
  if (donations == decided.donations) return;
  ++totals_.differing;
  if (!difference_) difference_ = {line, decided.time, decided.donations, std::move(donations)};
}

void Replayer::on(const Gap& gap, std::uint64_t) {
  ++totals_.gaps;
  totals_.lost += gap.lost;
}

void Replayer::tell(Time time, const std::vector<decide::Donation>& donations) {
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
