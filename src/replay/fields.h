// The fields of one JSON object, read strictly: each has its type and range, and the first that has not is remembered.
// So the readers of lines are plain lists of fields, and one question at the end tells whether all were good.
#pragma once

#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/resource.h"
#include "base/sched_attr.h"
#include "base/thread_id.h"
#include "base/time.h"
#include "replay/words.h"

namespace swapd::replay {

using Json = nlohmann::json;

// The first fault, if any; shared by the readers of one line.
class Mistake {
 public:
  void note(std::string text) {
    if (text_.empty()) text_ = std::move(text);
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  explicit operator bool() const { return !text_.empty(); }

 private:
  std::string text_;
};

// Values of arrays and of fields; `key` is for the mistake's text.
class Values {
 public:
  explicit Values(Mistake& mistake) : mistake_(mistake) {}

  template <std::integral T>
  T number(const Json& json, std::string_view key) {
    if (json.is_number_unsigned()) {
      const auto value = json.get<std::uint64_t>();
      if (value <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return static_cast<T>(value);
    } else if (json.is_number_integer()) {
      const auto value = json.get<std::int64_t>();
      if (std::is_signed_v<T> && value >= static_cast<std::int64_t>(std::numeric_limits<T>::min()))
        return static_cast<T>(value);
    }
    wrong(key, "a whole number in its range");
    return T{};
  }
  ThreadId thread(const Json& json, std::string_view key);
  Resource resource(const Json& json, std::string_view key);
  SchedAttr attr(const Json& json, std::string_view key);
  template <typename Enum, std::size_t N>
  Enum word(const Json& json, std::string_view key, const Words<Enum, N>& words) {
    if (json.is_string())
      if (const auto known = words.find(json.get_ref<const std::string&>())) return *known;
    wrong(key, "a known word");
    return Enum{};
  }
  // An array of exactly so many, or null.
  const Json* tuple(const Json& json, std::string_view key, std::size_t size);

  void wrong(std::string_view key, std::string_view wanted) {
    mistake_.note("'" + std::string(key) + "' is not " + std::string(wanted));
  }

 private:
  Mistake& mistake_;
};

class Fields {
 public:
  Fields(const Json& object, Mistake& mistake) : object_(object), values_(mistake) {}

  [[nodiscard]] bool has(const char* key) const { return object_.is_object() && object_.contains(key); }
  template <std::integral T>
  T number(const char* key) {
    return values_.number<T>(at(key), key);
  }
  template <std::integral T>
  T number_or(const char* key, T absent) {
    return has(key) ? number<T>(key) : absent;
  }
  bool flag(const char* key);
  bool flag_or(const char* key, bool absent) { return has(key) ? flag(key) : absent; }
  std::string text(const char* key);
  double real(const char* key);
  // Nanoseconds; within 2^62, so that differences do not overflow.
  Duration duration(const char* key);
  Time time(const char* key) { return Time(duration(key)); }
  ThreadId thread(const char* key) { return values_.thread(at(key), key); }
  Resource resource(const char* key) { return values_.resource(at(key), key); }
  SchedAttr attr(const char* key) { return values_.attr(at(key), key); }
  template <typename Enum, std::size_t N>
  Enum word(const char* key, const Words<Enum, N>& words) {
    return values_.word(at(key), key, words);
  }
  template <typename ReadOne>
  auto list(const char* key, ReadOne read_one) {
    std::vector<decltype(read_one(object_))> found;
    const Json& json = at(key);
    if (!json.is_array()) {
      values_.wrong(key, "a list");
      return found;
    }
    found.reserve(json.size());
    for (const Json& one : json) found.push_back(read_one(one));
    return found;
  }
  template <std::integral T>
  std::vector<T> numbers(const char* key) {
    return list(key, [&](const Json& one) { return values_.number<T>(one, key); });
  }
  std::vector<ThreadId> threads(const char* key) {
    return list(key, [&](const Json& one) { return values_.thread(one, key); });
  }
  std::vector<Resource> resources(const char* key) {
    return list(key, [&](const Json& one) { return values_.resource(one, key); });
  }
  Values& values() { return values_; }

 private:
  const Json& at(const char* key) const;

  const Json& object_;
  Values values_;
};

}  // namespace swapd::replay
