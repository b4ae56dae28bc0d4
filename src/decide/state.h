// A decider's state as a row of numbers, for recordings: written and read by one and the same function of each type,
//   template <typename Self, typename Archive> static void state(Self& self, Archive& archive) { archive(self.a,
//   self.b); }
// so that the two cannot differ. A reader takes nothing on trust: what does not fit fails, and leaves its owner as it
// is.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/resource.h"
#include "base/sched_attr.h"
#include "base/thread_id.h"
#include "base/time.h"

namespace swapd::decide {

template <typename T>
inline constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;

// A set or a map; of these one that has no order of its own.
template <typename T>
concept Keyed = requires {
  typename T::key_type;
};
template <typename T>
concept Mapped = Keyed<T> && requires {
  typename T::mapped_type;
};
template <typename T>
concept Hashed = Keyed<T> && requires {
  typename T::hasher;
};
template <typename T>
concept Row = !Keyed<T> && !std::is_same_v<T, std::string> && requires(T & row) {
  row.emplace_back();
};

class StateWriter {
 public:
  template <typename... Ts>
  void operator()(const Ts&... values) {
    (put(values), ...);
  }
  [[nodiscard]] const std::vector<std::int64_t>& numbers() const { return numbers_; }
  // The places of points in time among them: a recording counts from its own begin.
  [[nodiscard]] const std::vector<std::uint32_t>& times() const { return times_; }

 private:
  template <typename T>
  requires is_number<T>
  void put(T value) { numbers_.push_back(static_cast<std::int64_t>(value)); }
  void put(double value) { numbers_.push_back(std::bit_cast<std::int64_t>(value)); }
  void put(Duration value) { put(value.count()); }
  void put(Time value) {
    times_.push_back(static_cast<std::uint32_t>(numbers_.size()));
    put(value.time_since_epoch());
  }
  void put(ThreadId id) { (*this)(id.tid, id.start_time); }
  void put(const Resource& resource) {
    put(resource.kind);
    for (const std::uint64_t id : resource.ids) put(id);
  }
  void put(const SchedAttr& a) {
    (*this)(a.policy, a.nice, a.rt_priority, a.reset_on_fork, a.runtime_ns, a.deadline_ns, a.period_ns);
  }
  void put(const std::string& text) {
    put(text.size());
    for (const char c : text) put(c);
  }
  template <typename A, typename B>
  void put(const std::pair<A, B>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <typename T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <typename T, std::size_t N>
  void put(const std::array<T, N>& values) {
    for (const T& value : values) put(value);
  }
  template <typename Container>
  requires Row<Container> ||(Keyed<Container> && !Hashed<Container>)void put(const Container& values) {
    put(values.size());
    for (const auto& value : values) put(value);
  }
  // In the order of their keys: what is equal is written alike.
  template <Hashed Container>
  void put(const Container& values) {
    std::vector<const typename Container::value_type*> sorted;
    for (const auto& one : values) sorted.push_back(&one);
    std::ranges::sort(
        sorted, {}, [](const auto* one) -> const auto& {
          if constexpr (Mapped<Container>)
            return one->first;
          else
            return *one;
        });
    put(sorted.size());
    for (const auto* one : sorted) put(*one);
  }
  template <typename T>
  requires requires(const T& value, StateWriter& self) { T::state(value, self); }
  void put(const T& value) { T::state(value, *this); }

  std::vector<std::int64_t> numbers_;
  std::vector<std::uint32_t> times_;
};

class StateReader {
 public:
  explicit StateReader(std::span<const std::int64_t> numbers) : left_(numbers) {}
  template <typename... Ts>
  void operator()(Ts&... values) {
    (get(values), ...);
  }
  [[nodiscard]] bool has_more() const { return !left_.empty(); }
  // All was there, and nothing is left.
  [[nodiscard]] bool good() const { return good_ && left_.empty(); }

 private:
  std::int64_t next() {
    if (left_.empty()) {
      good_ = false;
      return 0;
    }
    const std::int64_t value = left_.front();
    left_ = left_.subspan(1);
    return value;
  }
  // Each element takes a number at the least.
  std::size_t count() {
    const std::int64_t value = next();
    if (value >= 0 && static_cast<std::size_t>(value) <= left_.size()) return static_cast<std::size_t>(value);
    good_ = false;
    return 0;
  }
  template <typename T>
  requires is_number<T>
  void get(T& value) { value = static_cast<T>(next()); }
  void get(double& value) { value = std::bit_cast<double>(next()); }
  void get(Duration& value) { value = Duration(next()); }
  void get(Time& value) { value = Time(Duration(next())); }
  void get(ThreadId& id) { (*this)(id.tid, id.start_time); }
  void get(Resource& resource) {
    const std::int64_t kind = next();
    if (kind < 0 || kind >= static_cast<std::int64_t>(resource_kinds)) good_ = false;
    resource.kind = good_ ? static_cast<ResourceKind>(kind) : ResourceKind{};
    for (std::uint64_t& id : resource.ids) get(id);
  }
  void get(SchedAttr& a) {
    (*this)(a.policy, a.nice, a.rt_priority, a.reset_on_fork, a.runtime_ns, a.deadline_ns, a.period_ns);
  }
  void get(std::string& text) {
    text.clear();
    for (std::size_t left = count(); left > 0 && good_; --left) text.push_back(static_cast<char>(next()));
  }
  template <typename A, typename B>
  void get(std::pair<A, B>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <typename T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    value.reset();
    if (there) get(value.emplace());
  }
  template <typename T, std::size_t N>
  void get(std::array<T, N>& values) {
    for (T& value : values) get(value);
  }
  template <Row Container>
  void get(Container& values) {
    values.clear();
    for (std::size_t left = count(); left > 0 && good_; --left) get(values.emplace_back());
  }
  template <Keyed Container>
  void get(Container& values) {
    values.clear();
    for (std::size_t left = count(); left > 0 && good_; --left) {
      typename Container::key_type key{};
      get(key);
      if constexpr (Mapped<Container>)
        get(values[key]);
      else
        values.insert(key);
    }
  }
  template <typename T>
  requires requires(T& value, StateReader& self) { T::state(value, self); }
  void get(T& value) { T::state(value, *this); }

  std::span<const std::int64_t> left_;
  bool good_ = true;
};

}  // namespace swapd::decide
