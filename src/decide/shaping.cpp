#include "decide/shaping.h"

#include <algorithm>
#include <span>
#include <utility>

namespace swapd::decide {
namespace {

Tokens burst_of(const Limit& limit) {
  constexpr Tokens in_a_second = 20;  // of 50 ms
  return limit.burst.value_or(std::max(*limit.bytes / in_a_second, min_burst));
}

// Operations come one by one: what 50 ms bring, at least one.
Tokens operations_burst(Tokens rate) { return std::max(rate / 20, Tokens{1}); }

}  // namespace

Turns turns_of(const BucketRules& rules) {
  return {.share = std::max(rules.rate / 100, Tokens{1}),
          .ahead = std::max(rules.rate / 10, min_burst),
          .others = std::max(rules.rate / 2, min_burst)};
}

bool ClassLimits::limits() const {
  return disks.limits() || networks.limits() ||
         std::ranges::any_of(devices, [](const auto& entry) { return entry.second.limits(); });
}

bool ClassLimits::counts_operations() const {
  return disks.counts_operations() || std::ranges::any_of(devices, [](const auto& entry) {
           return entry.first.kind == Device::Kind::disk && entry.second.counts_operations();
         });
}

bool Passage::join(const Passage& earlier) {
  const auto same_place = [](const Place& a, const Place& b) {
    return a.bucket == b.bucket && a.version == b.version && a.operations == b.operations && a.leg == b.leg;
  };
  const auto own = std::span(places).first(count);
  const auto others = std::span(earlier.places).first(earlier.count);
  if (legs != 1 || earlier.legs != 1 || !is_alike(earlier) || !std::ranges::equal(own, others, same_place))
    return false;
  for (std::size_t i = 0; i < count; ++i)
    if (!places.at(i).operations) places.at(i).cost += earlier.places.at(i).cost;
  return true;
}

Tokens Passage::rest() const {
  Tokens most = 0;
  for (const Place& place : std::span(places).first(count)) most = std::max(most, place.rest);
  return most;
}

Tokens Debts::rest() const {
  Tokens most = 0;
  for (const Debt& one : all_) most = std::max(most, one.passage.rest());
  return most;
}

void Debts::add(const Passage& debt, bool pages) {
  if (debt.count == 0) return;
  for (Debt& known : all_) {
    Passage& one = known.passage;
    if (known.pages != pages || !one.is_alike(debt)) continue;
    Passage sum = debt;
    for (const Passage::Place& before : std::span(one.places).first(one.count)) {
      const auto places = std::span(sum.places).first(sum.count);
      const auto same = std::ranges::find_if(places, [&](const Passage::Place& place) {
        return place.bucket == before.bucket && place.version == before.version;
      });
      if (same != places.end())
        same->rest += before.rest;
      else if (before.rest > 0 && sum.count < Passage::max_places)
        sum.places.at(sum.count++) = before;
    }
    one = sum;
    return;
  }
  all_.push_back({.passage = debt, .pages = pages});
}

std::optional<Shaping::ClassIndex> Shaping::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

template <typename T>
std::uint32_t Shaping::place(std::vector<T>& all, std::vector<std::uint32_t>& unused) {
  if (unused.empty()) {
    all.emplace_back();
    return static_cast<std::uint32_t>(all.size() - 1);
  }
  const std::uint32_t at = unused.back();
  unused.pop_back();
  return at;
}

Shaping::ClassIndex Shaping::set(std::string_view name, const ClassLimits& limits, Time now) {
  const auto known = find(name);
  const ClassIndex at = known ? *known : place(classes_, free_classes_);
  if (!known) by_name_.emplace(name, at);
  Class& one = classes_[at];
  one.gone = false;
  one.limits = limits;
  for (const auto& [device, books] : one.books) fit(books_.at(books), limits_of(one, device), now);
  return at;
}

void Shaping::remove(std::string_view name) {
  const auto at = find(name);
  if (!at) return;
  Class& one = classes_[*at];
  for (const auto& [device, number] : one.books) {
    Books& books = books_.at(number);
    fit(books, {}, Time{});
    books.account = {};
    ++books.version;
    free_books_.push_back(number);
  }
  one = {};
  by_name_.erase(by_name_.find(name));
  free_classes_.push_back(*at);
}

void Shaping::retire(std::string_view name, ClassIndex heir, Time now) {
  const auto at = find(name);
  if (!at || *at == heir) return;
  std::vector<std::pair<std::uint32_t, Books::Heir>> inherited;
  for (const auto& [device, number] : classes_[*at].books) {
    const std::uint32_t target = books_of(classes_.at(heir), device, now);
    books_[target].account.add(books_[number].account);
    inherited.push_back({number, {target, books_[target].version}});
  }
  remove(name);
  for (const auto& [number, to] : inherited) books_[number].heir = to;
}

const DeviceLimits& Shaping::limits_of(const Class& one, const Device& device) const {
  const auto own = one.limits.devices.find(device);
  if (own != one.limits.devices.end()) return own->second;
  return device.kind == Device::Kind::disk ? one.limits.disks : one.limits.networks;
}

std::uint32_t Shaping::books_of(Class& one, Device device, Time now) {
  if (!one.books.contains(device) && one.books.size() >= max_devices) device.number = 0;
  const auto [at, is_new] = one.books.try_emplace(device);
  if (is_new) {
    // Not at once: the calls of whoever has ended may still be settled with its heir.
    if (free_books_.size() > max_heirs) {
      at->second = free_books_.front();
      free_books_.pop_front();
    } else {
      at->second = static_cast<std::uint32_t>(books_.size());
      books_.emplace_back();
    }
    books_[at->second].account.device = device;
    books_[at->second].heir.reset();
    fit(books_[at->second], limits_of(one, device), now);
  }
  return at->second;
}

void Shaping::fit(Books& books, const DeviceLimits& limits, Time now) {
  fit(books.both, limits.both, now);
  fit(books.read, limits.read, now);
  fit(books.write, limits.write, now);
}

void Shaping::fit(Pair& pair, const Limit& limit, Time now) {
  const auto bytes = limit.bytes ? std::optional(BucketRules{*limit.bytes, burst_of(limit)}) : std::nullopt;
  const auto operations = limit.operations
                              ? std::optional(BucketRules{*limit.operations, operations_burst(*limit.operations)})
                              : std::nullopt;
  fit(pair.bytes, bytes, now);
  fit(pair.operations, operations, now);
}

// A bucket that is taken away gets another version: tickets of before mean nothing in the next one at its place.
void Shaping::fit(std::optional<std::uint32_t>& slot, std::optional<BucketRules> rules, Time now) {
  if (slot && rules) {
    if (Bucket& bucket = *slots_[*slot].bucket; bucket.rules() != *rules) bucket.change(*rules, now);
  } else if (slot) {
    slots_[*slot].bucket.reset();
    ++slots_[*slot].version;
    free_slots_.push_back(*slot);
    slot.reset();
  } else if (rules) {
    slot = place(slots_, free_slots_);
    slots_[*slot].bucket.emplace(*rules, now);
  }
}

const Bucket* Shaping::bucket(const Passage::Place& place) const {
  const Slot& slot = slots_[place.bucket];
  return slot.version == place.version && slot.bucket ? &*slot.bucket : nullptr;
}

void Shaping::add(Passage& passage, const Pair& pair, std::uint8_t leg, Tokens cost, Time now) {
  const auto take_place = [&](const std::optional<std::uint32_t>& at, Tokens tokens, bool operations) {
    if (!at || passage.count == Passage::max_places) return;
    const auto others = std::span(passage.places).first(passage.count);
    const auto same = std::ranges::find(others, *at, &Passage::Place::bucket);
    if (operations && same != others.end()) return;  // two legs are one call
    Slot& slot = slots_[*at];
    Passage::Place place{
        .bucket = *at, .version = slot.version, .cost = 0, .rest = tokens, .operations = operations, .leg = leg};
    take(place, *slot.bucket, now);
    if (same != others.end()) place.ticket = same->ticket;  // its other leg does not stand before it
    passage.places[passage.count++] = place;
  };
  take_place(pair.bytes, cost, false);
  take_place(pair.operations, 1, true);
}

// The next part of what is to be taken: all that is left where its call may go on then.
void Shaping::take(Passage::Place& place, Bucket& from, Time now) {
  const Turns turns = turns_of(from.rules());
  const bool last = place.operations || place.rest <= turns.ahead;
  const Tokens part = last ? place.rest : std::min(place.rest, std::max(turns.share, from.count(now)));
  place.ticket = from.enter(part, now);
  if (place.after) place.ticket = from.last();
  place.cost += part;
  place.rest -= part;
}

Time Shaping::advance(Passage& passage, Time now) {
  for (Passage::Place& place : std::span(passage.places).first(passage.count)) {
    Bucket* const one = bucket(place);
    if (one == nullptr) place.rest = 0;  // it is no more
    while (place.rest > 0 && one->due(place.ticket, now) <= now) take(place, *one, now);
  }
  return due(passage, now);
}

Time Shaping::advance(Debts& debts, bool pages_only, Time now) {
  Time latest = now;
  std::erase_if(debts.all_, [&](Debts::Debt& debt) {
    const bool counts = debt.pages || !pages_only;
    const Time next = counts ? advance(debt.passage, now) : due(debt.passage, now);
    if (counts) latest = std::max(latest, next);
    return next <= now && debt.passage.rest() == 0;
  });
  return latest;
}

void Shaping::write_off(const Debts& debts) {
  for (const Debts::Debt& debt : debts.all_)
    if (Account* of = account(debt.passage, 0)) of->written_off += debt.passage.rest();
}

std::vector<std::pair<Device, Tokens>> Shaping::owed(const Debts& debts, ClassIndex of) const {
  std::vector<std::pair<Device, Tokens>> out;
  for (const Debts::Debt& debt : debts.all_)
    for (const auto& [device, at] : classes_.at(of).books)
      if (at == debt.passage.accounts[0] && books_.at(at).version == debt.passage.versions[0])
        out.emplace_back(device, debt.passage.rest());
  return out;
}

Passage Shaping::enter(ClassIndex of, const Leg* legs, std::size_t count, Time now) {
  Passage passage;
  Class& one = classes_.at(of);
  if (one.gone) return passage;
  for (std::size_t i = 0; i < std::min(count, Passage::max_legs); ++i) {
    const Leg& leg = legs[i];
    const auto at = passage.legs++;
    passage.accounts.at(at) = books_of(one, leg.device, now);
    passage.ways.at(at) = leg.way;
    const Books& books = books_[passage.accounts.at(at)];
    passage.versions.at(at) = books.version;
    add(passage, books.both, at, std::max(leg.cost, Tokens{1}), now);
    add(passage, leg.way == Way::read ? books.read : books.write, at, std::max(leg.cost, Tokens{1}), now);
  }
  return passage;
}

void Shaping::postpone(Passage& passage, Time now) {
  for (Passage::Place& place : std::span(passage.places).first(passage.count)) {
    Bucket* const one = bucket(place);
    if (place.operations || one == nullptr) continue;
    one->settle(place.cost, 0, now);
    place.rest += std::exchange(place.cost, 0);
  }
}

Time Shaping::due(const Passage& passage, Time now) const {
  Time due = now;
  for (std::size_t i = 0; i < passage.count; ++i)
    if (const Bucket* one = bucket(passage.places[i])) due = std::max(due, one->due(passage.places[i].ticket, now));
  return due;
}

bool Shaping::has_places_of(const Passage& passage, ClassIndex of, const Leg& leg) const {
  const Class& one = classes_.at(of);
  const auto books = one.books.find(leg.device);
  return passage.legs == 1 && books != one.books.end() && books->second == passage.accounts[0] &&
         books_.at(books->second).version == passage.versions[0] && leg.way == passage.ways[0];
}

bool Shaping::spares(const Passage& passage, Tokens more, Time now) const {
  return std::ranges::all_of(std::span(passage.places).first(passage.count), [&](const Passage::Place& place) {
    const Bucket* one = bucket(place);
    return one != nullptr && one->count(now) - (place.operations ? 1 : more) >= one->rules().burst / 2;
  });
}

Shaping::Account* Shaping::account(const Passage& passage, std::size_t leg) {
  Books& books = books_[passage.accounts.at(leg)];
  if (books.version == passage.versions.at(leg)) return &books.account;
  if (!books.heir || books.version != passage.versions.at(leg) + 1) return nullptr;
  Books& heir = books_[books.heir->books];
  return heir.version == books.heir->version ? &heir.account : nullptr;
}

Passage Shaping::settle(const Passage& passage, const Moved& moved, Time now) {
  Passage debt;
  for (std::size_t i = 0; i < passage.count; ++i) {
    const Passage::Place& place = passage.places[i];
    Bucket* const one = bucket(place);
    if (place.operations || one == nullptr) continue;
    const Tokens bytes = std::max(moved.bytes.at(place.leg), static_cast<Tokens>(moved.calls));
    one->settle(place.cost, std::min(bytes, place.cost), now);
    const Tokens left = one->owe(bytes - std::min(bytes, place.cost), turns_of(one->rules()).others, now);
    if (left > 0)
      debt.places.at(debt.count++) = {.bucket = place.bucket,
                                      .version = place.version,
                                      .ticket = one->last(),
                                      .cost = 0,
                                      .rest = left,
                                      .after = true,
                                      .leg = 0};
  }
  if (debt.count > 0) {
    const std::size_t leg = passage.legs > 1 && moved.bytes[1] > moved.bytes[0] ? 1 : 0;
    debt.legs = 1;
    debt.accounts[0] = passage.accounts.at(leg);
    debt.versions[0] = passage.versions.at(leg);
    debt.ways[0] = passage.ways.at(leg);
  }
  for (std::size_t leg = 0; leg < passage.legs; ++leg) {
    Account* of = account(passage, leg);
    if (of == nullptr) continue;
    of->bytes.at(static_cast<std::size_t>(passage.ways.at(leg))) += moved.bytes.at(leg);
    if (leg == 0) of->cached += moved.cached;
    const auto before = std::span(passage.accounts).first(leg);
    if (std::ranges::find(before, passage.accounts.at(leg)) != before.end()) continue;  // one call
    of->calls += moved.calls;
    if (moved.waited == Duration::zero()) continue;
    ++of->delayed;
    of->waited += moved.waited;
  }
  return debt;
}

void Shaping::withdraw(const Passage& passage, Time now) {
  for (std::size_t i = 0; i < passage.count; ++i)
    if (Bucket* one = bucket(passage.places[i])) one->settle(passage.places[i].cost, 0, now);
}

Passage Shaping::charge(ClassIndex of, Device device, Way way, Tokens bytes, Time now) {
  Passage passage;
  Class& one = classes_.at(of);
  if (one.gone || bytes <= 0) return passage;
  const std::uint32_t at = books_of(one, device, now);
  Books& books = books_[at];
  passage.legs = 1;
  passage.accounts[0] = at;
  passage.versions[0] = books.version;
  passage.ways[0] = way;
  for (const Pair* pair : {&books.both, way == Way::read ? &books.read : &books.write}) {
    if (!pair->bytes) continue;
    const Slot& slot = slots_[*pair->bytes];
    const Tokens left = slots_[*pair->bytes].bucket->owe(bytes, turns_of(slot.bucket->rules()).others, now);
    passage.places.at(passage.count++) = {.bucket = *pair->bytes,
                                          .version = slot.version,
                                          .ticket = slot.bucket->last(),
                                          .cost = bytes - left,
                                          .rest = left,
                                          .after = true};
  }
  books.account.mapped += bytes;
  return passage;
}

void Shaping::waited(const Passage& passage, Duration waited) {
  if (passage.empty()) return;
  Account* of = account(passage, 0);
  if (of == nullptr) return;
  ++of->delayed;
  of->waited += waited;
}

}  // namespace swapd::decide
