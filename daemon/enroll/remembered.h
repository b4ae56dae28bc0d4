// Answers that cost a look at files, kept for a minute, because what they tell can change. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace swapd::daemon {

template <typename Key, typename Value>
class Remembered {
 public:
  // look(): an optional Value; nothing is not kept.
  template <typename Look>
  [[nodiscard]] std::optional<Value> of(const Key& key, Look look) {
    const auto now = std::chrono::steady_clock::now();
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = known_.find(key); known != known_.end() && now - known->second.second < lasts)
        return known->second.first;
    }
    std::optional<Value> value = look();
    if (!value) return value;
    const std::lock_guard lock(mutex_);
    if (known_.size() >= most) known_.clear();
    known_.insert_or_assign(key, std::pair(*value, now));
    return value;
  }

 private:
  static constexpr std::chrono::seconds lasts{60};
  static constexpr std::size_t most = 10'000;
  std::mutex mutex_;
  std::map<Key, std::pair<Value, std::chrono::steady_clock::time_point>> known_;
};

}  // namespace swapd::daemon
