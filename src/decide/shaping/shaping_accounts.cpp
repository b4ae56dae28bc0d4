// The accounts of classes: what they have moved and owe.
#include <algorithm>
#include <span>

#include "decide/shaping/shaping.h"

namespace swapd::decide {

Shaping::Account* Shaping::account(const Reservation& reservation, std::size_t transfer) {
  DeviceLedger& ledger = ledgers_[reservation.accounts.at(transfer)];
  const std::uint32_t version = reservation.versions.at(transfer);
  if (ledger.version == version) return &ledger.account;
  if (!ledger.successor || ledger.version != version + 1) return nullptr;
  DeviceLedger& successor = ledgers_[ledger.successor->ledger];
  return successor.version == ledger.successor->version ? &successor.account : nullptr;
}

void Shaping::enter_in_accounts(const Reservation& reservation, const Moved& moved) {
  for (std::size_t transfer = 0; transfer < reservation.transfers; ++transfer) {
    Account* of = account(reservation, transfer);
    if (of == nullptr) continue;
    of->bytes.at(static_cast<std::size_t>(reservation.directions.at(transfer))) += moved.bytes.at(transfer);
    if (transfer == 0) of->cached += moved.cached;
    const auto before = std::span(reservation.accounts).first(transfer);
    if (std::ranges::find(before, reservation.accounts.at(transfer)) != before.end()) continue;  // one call
    of->calls += moved.calls;
    if (moved.waited == Duration::zero()) continue;
    ++of->delayed;
    of->waited += moved.waited;
  }
}

void Shaping::waited(const Reservation& reservation, Duration waited) {
  if (reservation.empty()) return;
  Account* of = account(reservation, 0);
  if (of == nullptr) return;
  ++of->delayed;
  of->waited += waited;
}

void Shaping::cap_debt(ClassIndex of, Duration most, Time now) {
  const double seconds = std::chrono::duration<double>(most).count();
  for (const auto& [device, at] : classes_.at(of).ledgers) {
    const auto& number = ledgers_.at(at).both.bytes;
    if (device.kind != Device::Kind::disk || !number) continue;
    TokenBucket& bucket = buckets_.at(*number);
    bucket.cap_debt(static_cast<Tokens>(static_cast<double>(bucket.rules().rate) * seconds), now);
  }
}

void Shaping::Account::add(const Account& other) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes.at(i) += other.bytes.at(i);
  cached += other.cached;
  mapped += other.mapped;
  written_off += other.written_off;
  calls += other.calls;
  delayed += other.delayed;
  waited += other.waited;
}

Shaping::Account::Level Shaping::level(const BucketPair& pair, const Limit& limit, Time now) const {
  Account::Level out{.limit = limit, .bytes = {}, .operations = {}};
  if (pair.bytes) out.bytes = buckets_.at(*pair.bytes).count(now);
  if (pair.operations) out.operations = buckets_.at(*pair.operations).count(now);
  return out;
}

std::vector<Shaping::Account> Shaping::accounts(ClassIndex of, Time now) const {
  std::vector<Account> out;
  const Class& its = classes_.at(of);
  for (const auto& [device, at] : its.ledgers) {
    const DeviceLedger& ledger = ledgers_.at(at);
    const DeviceLimits& limits = its.limits.of(device);
    Account account = ledger.account;
    account.both = level(ledger.both, limits.both, now);
    account.read = level(ledger.read, limits.read, now);
    account.write = level(ledger.write, limits.write, now);
    out.push_back(account);
  }
  std::stable_partition(out.begin(), out.end(), [](const Account& each) { return each.device.number != 0; });
  return out;
}

}  // namespace swapd::decide
