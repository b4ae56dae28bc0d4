#include "decide/shaping/reservation.h"

#include <algorithm>
#include <span>

namespace swapd::decide {

bool Reservation::join(const Reservation& earlier) {
  const auto same_place = [](const Place& a, const Place& b) {
    return a.is_in_bucket_of(b) && a.operations == b.operations && a.transfer == b.transfer;
  };
  const auto own = std::span(places).first(count);
  const auto others = std::span(earlier.places).first(earlier.count);
  if (transfers != 1 || earlier.transfers != 1 || !is_alike(earlier) || !std::ranges::equal(own, others, same_place))
    return false;
  for (std::size_t i = 0; i < count; ++i)
    if (!places.at(i).operations) places.at(i).cost += earlier.places.at(i).cost;
  return true;
}

Tokens Reservation::rest() const {
  Tokens most = 0;
  for (const Place& place : std::span(places).first(count)) most = std::max(most, place.rest);
  return most;
}

Tokens Debts::rest() const {
  Tokens most = 0;
  for (const Debt& debt : all_) most = std::max(most, debt.reservation.rest());
  return most;
}

void Debts::add(const Reservation& debt, bool pages) {
  if (debt.count == 0) return;
  for (Debt& known : all_) {
    if (known.pages != pages || !known.reservation.is_alike(debt)) continue;
    Reservation sum = debt;
    for (const Reservation::Place& before : std::span(known.reservation.places).first(known.reservation.count)) {
      const auto places = std::span(sum.places).first(sum.count);
      const auto same =
          std::ranges::find_if(places, [&](const Reservation::Place& place) { return place.is_in_bucket_of(before); });
      if (same != places.end())
        same->rest += before.rest;
      else if (before.rest > 0 && sum.count < Reservation::max_places)
        sum.places.at(sum.count++) = before;
    }
    known.reservation = sum;
    return;
  }
  all_.push_back({.reservation = debt, .pages = pages});
}

}  // namespace swapd::decide
