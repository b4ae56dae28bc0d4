// One JSON object a line, written without a tree: numbers, and words that need no escape. The recorder runs beside what
// it records, so a line costs a few appends.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/resource.h"
#include "base/sched_attr.h"
#include "base/thread_id.h"

namespace swapd::replay {

class Line {
 public:
  // The line ends with the object's life.
  Line(std::string& out, std::string_view type) : out_(out) {
    out_ += "{\"type\":";
    put(type);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { out_ += "}\n"; }

  template <typename T>
  Line& add(std::string_view key, const T& value) {
    out_ += ",\"";
    out_ += key;
    out_ += "\":";
    put(value);
    return *this;
  }
  // "key":[…] with what `put_one(element)` writes for each.
  template <typename T, typename Memory, typename PutOne>
  Line& add_list(std::string_view key, const std::vector<T, Memory>& values, PutOne put_one) {
    out_ += ",\"";
    out_ += key;
    out_ += "\":";
    list(values, put_one);
    return *this;
  }

  void raw(std::string_view text) { out_ += text; }
  void put(bool value) { out_ += value ? "true" : "false"; }
  template <std::integral T>
  void put(T value) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out_.append(digits.data(), end);
  }
  // Printable ASCII stands; anything else, which no word of ours has, becomes '?'.
  void put(std::string_view text) {
    out_ += '"';
    for (const char c : text) out_ += c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c;
    out_ += '"';
  }
  void put(const std::string& text) { put(std::string_view(text)); }
  void put(const char* text) { put(std::string_view(text)); }
  void put(ThreadId id) {
    out_ += '[';
    put(id.tid);
    out_ += ',';
    put(id.start_time);
    out_ += ']';
  }
  // ["kind",id…] without the zeros at the end.
  void put(const Resource& resource) {
    out_ += '[';
    put(name(resource.kind));
    std::size_t used = resource.ids.size();
    while (used > 0 && resource.ids.at(used - 1) == 0) --used;
    for (std::size_t i = 0; i < used; ++i) {
      out_ += ',';
      put(resource.ids.at(i));
    }
    out_ += ']';
  }
  // Without the fields that are 0 or false.
  void put(const SchedAttr& attr) {
    out_ += "{\"policy\":";
    put(name(attr.policy));
    const auto field = [this](std::string_view key, auto value) {
      if (value == decltype(value){}) return;
      out_ += ",\"";
      out_ += key;
      out_ += "\":";
      put(value);
    };
    field("nice", static_cast<int>(attr.nice));
    field("priority", static_cast<int>(attr.rt_priority));
    field("reset_on_fork", attr.reset_on_fork);
    field("runtime_ns", attr.runtime_ns);
    field("deadline_ns", attr.deadline_ns);
    field("period_ns", attr.period_ns);
    out_ += '}';
  }
  template <typename T, typename Memory>
  void put(const std::vector<T, Memory>& values) {
    list(values, [this](const T& value) { put(value); });
  }
  template <typename T, typename Memory, typename PutOne>
  void list(const std::vector<T, Memory>& values, PutOne put_one) {
    out_ += '[';
    bool first = true;
    for (const T& value : values) {
      if (!first) out_ += ',';
      first = false;
      put_one(value);
    }
    out_ += ']';
  }

 private:
  std::string& out_;
};

}  // namespace swapd::replay
