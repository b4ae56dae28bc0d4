// What classes have moved and owe, to be shown.
#include <algorithm>

#include "decide/shaping.h"

namespace swapd::decide {

void Shaping::forgive(ClassIndex of, Duration most, Time now) {
  const double seconds = std::chrono::duration<double>(most).count();
  for (const auto& [device, at] : classes_.at(of).books) {
    const auto& slot = books_.at(at).both.bytes;
    if (device.kind != Device::Kind::disk || !slot) continue;
    Bucket& bucket = *slots_[*slot].bucket;
    bucket.forgive(static_cast<Tokens>(static_cast<double>(bucket.rules().rate) * seconds), now);
  }
}

void Shaping::Account::add(const Account& other) {
  for (std::size_t way = 0; way < bytes.size(); ++way) bytes.at(way) += other.bytes.at(way);
  cached += other.cached;
  mapped += other.mapped;
  written_off += other.written_off;
  calls += other.calls;
  delayed += other.delayed;
  waited += other.waited;
}

Shaping::Account::Level Shaping::level(const Pair& pair, const Limit& limit, Time now) const {
  Account::Level out{.limit = limit, .bytes = {}, .operations = {}};
  if (pair.bytes) out.bytes = slots_[*pair.bytes].bucket->count(now);
  if (pair.operations) out.operations = slots_[*pair.operations].bucket->count(now);
  return out;
}

std::vector<Shaping::Account> Shaping::accounts(ClassIndex of, Time now) const {
  std::vector<Account> out;
  const Class& one = classes_.at(of);
  for (const auto& [device, at] : one.books) {
    const Books& books = books_.at(at);
    const DeviceLimits& limits = limits_of(one, device);
    Account account = books.account;
    account.both = level(books.both, limits.both, now);
    account.read = level(books.read, limits.read, now);
    account.write = level(books.write, limits.write, now);
    out.push_back(account);
  }
  std::stable_partition(out.begin(), out.end(), [](const Account& each) { return each.device.number != 0; });
  return out;
}

}  // namespace swapd::decide
