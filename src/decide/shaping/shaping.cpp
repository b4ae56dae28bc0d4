#include "decide/shaping/shaping.h"

#include <algorithm>
#include <span>
#include <utility>

namespace swapd::decide {

std::optional<Shaping::ClassIndex> Shaping::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

Shaping::ClassIndex Shaping::set(std::string_view name, const ClassLimits& limits, Time now) {
  auto at = find(name);
  if (!at) {
    if (free_classes_.empty()) {
      free_classes_.push_back(static_cast<ClassIndex>(classes_.size()));
      classes_.emplace_back();
    }
    at = free_classes_.back();
    free_classes_.pop_back();
    by_name_.emplace(name, *at);
  }
  Class& its = classes_[*at];
  its.gone = false;
  its.limits = limits;
  for (const auto& [device, ledger] : its.ledgers) fit(ledgers_.at(ledger), its.limits.of(device), now);
  return *at;
}

void Shaping::remove(std::string_view name) {
  const auto at = find(name);
  if (!at) return;
  Class& its = classes_[*at];
  for (const auto& [device, number] : its.ledgers) {
    DeviceLedger& ledger = ledgers_.at(number);
    fit(ledger, {}, Time{});
    ledger.account = {};
    ++ledger.version;
    free_ledgers_.push_back(number);
  }
  its = {};
  by_name_.erase(by_name_.find(name));
  free_classes_.push_back(*at);
}

void Shaping::merge_into(std::string_view name, ClassIndex successor, Time now) {
  const auto at = find(name);
  if (!at || *at == successor) return;
  std::vector<std::pair<std::uint32_t, DeviceLedger::Successor>> merged;
  for (const auto& [device, number] : classes_[*at].ledgers) {
    const std::uint32_t target = ledger_of(classes_.at(successor), device, now);
    ledgers_[target].account.add(ledgers_[number].account);
    merged.push_back({number, {target, ledgers_[target].version}});
  }
  remove(name);
  for (const auto& [number, to] : merged) ledgers_[number].successor = to;
}

std::uint32_t Shaping::ledger_of(Class& its, Device device, Time now) {
  if (!its.ledgers.contains(device) && its.ledgers.size() >= max_devices) device.number = 0;
  const auto [at, is_new] = its.ledgers.try_emplace(device);
  if (is_new) {
    at->second = unused_ledger();
    DeviceLedger& ledger = ledgers_[at->second];
    ledger.account.device = device;
    ledger.successor.reset();
    fit(ledger, its.limits.of(device), now);
  }
  return at->second;
}

// A ledger is not used again at once: calls of a class that has ended may still be settled with its successor.
std::uint32_t Shaping::unused_ledger() {
  if (free_ledgers_.size() > max_successors) {
    const std::uint32_t oldest = free_ledgers_.front();
    free_ledgers_.pop_front();
    return oldest;
  }
  ledgers_.emplace_back();
  return static_cast<std::uint32_t>(ledgers_.size() - 1);
}

void Shaping::fit(DeviceLedger& ledger, const DeviceLimits& limits, Time now) {
  buckets_.fit(ledger.both, limits.both, now);
  buckets_.fit(ledger.read, limits.read, now);
  buckets_.fit(ledger.write, limits.write, now);
}

void Shaping::take_places(Reservation& reservation, const BucketPair& pair, std::uint8_t transfer, Tokens cost,
                          Time now) {
  take_place(reservation, pair.bytes, {.cost = 0, .rest = cost, .operations = false, .transfer = transfer}, now);
  take_place(reservation, pair.operations, {.cost = 0, .rest = 1, .operations = true, .transfer = transfer}, now);
}

void Shaping::take_place(Reservation& reservation, std::optional<std::uint32_t> bucket, Reservation::Place place,
                         Time now) {
  if (!bucket || reservation.count == Reservation::max_places) return;
  const auto others = std::span(reservation.places).first(reservation.count);
  const auto same = std::ranges::find(others, *bucket, &Reservation::Place::bucket);
  if (place.operations && same != others.end()) return;  // two transfers are one call
  place.bucket = *bucket;
  place.version = buckets_.version(*bucket);
  take(place, buckets_.at(*bucket), now);
  if (same != others.end()) place.ticket = same->ticket;  // its other transfer does not stand before it
  reservation.places[reservation.count++] = place;
}

// The next part of what is to be taken: all that is left where its call may go on then.
void Shaping::take(Reservation::Place& place, TokenBucket& from, Time now) {
  const Turns turns = turns_of(from.rules());
  const bool last = place.operations || place.rest <= turns.ahead;
  const Tokens part = last ? place.rest : std::min(place.rest, std::max(turns.share, from.count(now)));
  place.ticket = from.reserve(part, now);
  if (place.after) place.ticket = from.last();
  place.cost += part;
  place.rest -= part;
}

Time Shaping::advance(Reservation& reservation, Time now) {
  for (Reservation::Place& place : std::span(reservation.places).first(reservation.count)) {
    TokenBucket* const bucket = buckets_.find(place);
    if (bucket == nullptr) place.rest = 0;  // it is no more
    while (place.rest > 0 && bucket->due(place.ticket, now) <= now) take(place, *bucket, now);
  }
  return due(reservation, now);
}

Time Shaping::advance(Debts& debts, bool pages_only, Time now) {
  Time latest = now;
  std::erase_if(debts.all(), [&](Debts::Debt& debt) {
    const bool counts = debt.pages || !pages_only;
    const Time next = counts ? advance(debt.reservation, now) : due(debt.reservation, now);
    if (counts) latest = std::max(latest, next);
    return next <= now && debt.reservation.rest() == 0;
  });
  return latest;
}

void Shaping::write_off(const Debts& debts) {
  for (const Debts::Debt& debt : debts.all())
    if (Account* of = account(debt.reservation, 0)) of->written_off += debt.reservation.rest();
}

std::vector<std::pair<Device, Tokens>> Shaping::owed(const Debts& debts, ClassIndex of) const {
  std::vector<std::pair<Device, Tokens>> out;
  for (const Debts::Debt& debt : debts.all())
    for (const auto& [device, at] : classes_.at(of).ledgers)
      if (at == debt.reservation.accounts[0] && ledgers_.at(at).version == debt.reservation.versions[0])
        out.emplace_back(device, debt.reservation.rest());
  return out;
}

Reservation Shaping::reserve(ClassIndex of, const Transfer* transfers, std::size_t count, Time now) {
  Reservation reservation;
  Class& its = classes_.at(of);
  if (its.gone) return reservation;
  for (const Transfer& transfer : std::span(transfers, std::min(count, Reservation::max_transfers))) {
    const auto at = reservation.transfers++;
    const std::uint32_t number = ledger_of(its, transfer.device, now);
    const DeviceLedger& ledger = ledgers_[number];
    reservation.accounts.at(at) = number;
    reservation.versions.at(at) = ledger.version;
    reservation.directions.at(at) = transfer.direction;
    const Tokens cost = std::max(transfer.cost, Tokens{1});
    take_places(reservation, ledger.both, at, cost, now);
    take_places(reservation, ledger.apart(transfer.direction), at, cost, now);
  }
  return reservation;
}

void Shaping::postpone(Reservation& reservation, Time now) {
  for (Reservation::Place& place : std::span(reservation.places).first(reservation.count)) {
    TokenBucket* const bucket = buckets_.find(place);
    if (place.operations || bucket == nullptr) continue;
    bucket->settle(place.cost, 0, now);
    place.rest += std::exchange(place.cost, 0);
  }
}

Time Shaping::due(const Reservation& reservation, Time now) const {
  Time due = now;
  for (const Reservation::Place& place : std::span(reservation.places).first(reservation.count))
    if (const TokenBucket* bucket = buckets_.find(place)) due = std::max(due, bucket->due(place.ticket, now));
  return due;
}

bool Shaping::has_places_of(const Reservation& reservation, ClassIndex of, const Transfer& transfer) const {
  const Class& its = classes_.at(of);
  const auto ledger = its.ledgers.find(transfer.device);
  return reservation.transfers == 1 && ledger != its.ledgers.end() && ledger->second == reservation.accounts[0] &&
         ledgers_.at(ledger->second).version == reservation.versions[0] &&
         transfer.direction == reservation.directions[0];
}

bool Shaping::spares(const Reservation& reservation, Tokens more, Time now) const {
  const auto places = std::span(reservation.places).first(reservation.count);
  return std::ranges::all_of(places, [&](const Reservation::Place& place) {
    const TokenBucket* bucket = buckets_.find(place);
    return bucket != nullptr && bucket->count(now) - (place.operations ? 1 : more) >= bucket->rules().burst / 2;
  });
}

Reservation Shaping::settle(const Reservation& reservation, const Moved& moved, Time now) {
  Reservation debt;
  for (const Reservation::Place& place : std::span(reservation.places).first(reservation.count)) {
    TokenBucket* const bucket = buckets_.find(place);
    if (place.operations || bucket == nullptr) continue;
    const Tokens bytes = std::max(moved.bytes.at(place.transfer), static_cast<Tokens>(moved.calls));
    bucket->settle(place.cost, std::min(bytes, place.cost), now);
    const Tokens left = bucket->owe(bytes - std::min(bytes, place.cost), turns_of(bucket->rules()).others, now);
    if (left > 0)
      debt.places.at(debt.count++) = {.bucket = place.bucket,
                                      .version = place.version,
                                      .ticket = bucket->last(),
                                      .cost = 0,
                                      .rest = left,
                                      .after = true,
                                      .transfer = 0};
  }
  if (debt.count > 0) {
    const std::size_t larger = reservation.transfers > 1 && moved.bytes[1] > moved.bytes[0] ? 1 : 0;
    debt.transfers = 1;
    debt.accounts[0] = reservation.accounts.at(larger);
    debt.versions[0] = reservation.versions.at(larger);
    debt.directions[0] = reservation.directions.at(larger);
  }
  enter_in_accounts(reservation, moved);
  return debt;
}

void Shaping::cancel(const Reservation& reservation, Time now) {
  for (const Reservation::Place& place : std::span(reservation.places).first(reservation.count))
    if (TokenBucket* bucket = buckets_.find(place)) bucket->settle(place.cost, 0, now);
}

Reservation Shaping::charge(ClassIndex of, Device device, IoDirection direction, Tokens bytes, Time now) {
  Reservation reservation;
  Class& its = classes_.at(of);
  if (its.gone || bytes <= 0) return reservation;
  const std::uint32_t at = ledger_of(its, device, now);
  DeviceLedger& ledger = ledgers_[at];
  reservation.transfers = 1;
  reservation.accounts[0] = at;
  reservation.versions[0] = ledger.version;
  reservation.directions[0] = direction;
  for (const BucketPair* pair : {&std::as_const(ledger).both, &ledger.apart(direction)}) {
    if (!pair->bytes) continue;
    TokenBucket& bucket = buckets_.at(*pair->bytes);
    const Tokens left = bucket.owe(bytes, turns_of(bucket.rules()).others, now);
    reservation.places.at(reservation.count++) = {.bucket = *pair->bytes,
                                                  .version = buckets_.version(*pair->bytes),
                                                  .ticket = bucket.last(),
                                                  .cost = bytes - left,
                                                  .rest = left,
                                                  .after = true};
  }
  ledger.account.mapped += bytes;
  return reservation;
}

}  // namespace swapd::decide
