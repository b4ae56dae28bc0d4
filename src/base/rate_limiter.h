// Limits repeated messages: the first is told, and the next after a pause, with the number left out. Pure, but for
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "base/thread_id.h"
#include "base/time.h"

namespace swapd {

class RateLimiter {
 public:
  struct Key {
    ThreadId first, second;
    std::uint32_t what = 0;
    bool operator==(const Key&) const = default;
  };
  explicit RateLimiter(Duration pause = std::chrono::seconds(10), std::size_t most = 1024)
      : pause_(pause), most_(most) {}

  // None: be silent. Else how often there was silence about it since it was told last.
  [[nodiscard]] std::optional<std::uint64_t> tell(const Key& key, Time now) {
    const auto found = known_.find(key);
    if (found == known_.end()) {
      // So that it does not grow for ever: what is old is told as if for the first time.
      if (known_.size() >= most_)
        std::erase_if(known_, [&](const auto& one) { return now - one.second.told >= pause_; });
      if (known_.size() >= most_) known_.clear();
      known_[key] = {now, 0};
      return 0;
    }
    Known& known = found->second;
    if (now - known.told < pause_) {
      ++known.silent;
      return std::nullopt;
    }
    const std::uint64_t silent = known.silent;
    known = {now, 0};
    return silent;
  }

 private:
  struct Known {
    Time told{};
    std::uint64_t silent = 0;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      const std::hash<ThreadId> hash;
      return hash(key.first) ^ (hash(key.second) * 3) ^ key.what;
    }
  };
  Duration pause_;
  std::size_t most_;
  std::unordered_map<Key, Known, Hash> known_;
};

}  // namespace swapd
