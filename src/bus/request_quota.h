// How many requests a user may make in a second ([quota] requests in the policy). Pure. Root has no limit.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/time.h"
#include "base/token_bucket.h"

namespace swapd::bus {

class RequestQuota {
 public:
  // 0: no limit.
  explicit RequestQuota(std::uint32_t requests) : requests_(requests) {}

  // A request of this user has come. False: it is one too many.
  [[nodiscard]] bool take(std::uint32_t uid, Time now) {
    if (uid == 0 || requests_ == 0) return true;
    constexpr std::size_t max_users = 1024;
    if (users_.size() >= max_users) std::erase_if(users_, [&](const auto& user) { return user.second.full(now); });
    return users_.try_emplace(uid, requests_, requests_, now).first->second.take(now);
  }
  [[nodiscard]] std::uint32_t requests() const { return requests_; }

 private:
  std::uint32_t requests_;
  std::unordered_map<std::uint32_t, TokenBucket> users_;
};

}  // namespace swapd::bus
