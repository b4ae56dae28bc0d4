// A bounded map of what has been used lately. What was not used for `lasts` goes after twice that, when another one is
// put in: a cache of processes that come and go keeps no trace of them. Pure.
//
// Two generations: what is used is in the young one; when that is `lasts` old, or has half of what there is room for,
// it becomes the old one, and what was left in that goes. A value stays where it is from one use to the next.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>

#include "base/time.h"

namespace swapd {

template <typename Key, typename Value>
class LatelyUsed {
 public:
  // most: entries, at least 2.
  LatelyUsed(Duration lasts, std::size_t most) : lasts_(lasts), most_(most) {}

  // Null: it is not known. Valid until the next get() or erase(). Frees nothing: a thread that must not wait may call.
  [[nodiscard]] Value* find(const Key& key) {
    if (const auto at = young_.find(key); at != young_.end()) return &at->second;
    auto node = old_.extract(key);
    return node.empty() ? nullptr : &young_.insert(std::move(node)).position->second;
  }
  // Makes one where it is not known.
  [[nodiscard]] Value& get(const Key& key, Time now) {
    age(now);
    Value* known = find(key);
    return known != nullptr ? *known : young_[key];
  }
  void erase(const Key& key) {
    young_.erase(key);
    old_.erase(key);
  }
  [[nodiscard]] std::size_t size() const { return young_.size() + old_.size(); }

 private:
  using Map = std::unordered_map<Key, Value>;
  void age(Time now) {
    const bool late = now - begun_ >= 2 * lasts_;
    if (now - begun_ < lasts_ && young_.size() < most_ / 2) return;
    old_ = late ? Map() : std::exchange(young_, Map());
    if (late) young_ = Map();
    while (old_.size() > most_ / 2) old_.erase(old_.begin());  // all are in use, so any may go
    young_.reserve(old_.size());
    begun_ = now;
  }

  Duration lasts_;
  std::size_t most_;
  Map young_, old_;
  Time begun_{};  // of the young generation
};

}  // namespace swapd
