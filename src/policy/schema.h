// Keys that a table of a policy may hold: one rule a key, each of which reads its value into a place or says what is
// wrong.
//
// The aim is that the parser, the ranges, the error texts and the tests all come from one list: a key is one line of
// it.
#pragma once

#include <toml++/toml.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "base/words.h"

namespace swapd::policy {

// One entry of a TOML table, with the line of its key.
struct Entry {
  std::string_view key;
  const toml::node* node = nullptr;
  unsigned line = 0;
};
// The entries as the text has them, top to bottom, so that the first mistake is the one reported.
[[nodiscard]] std::vector<Entry> entries(const toml::table& table);

// Builds the error lines "FILE:LINE: what is wrong".
class Complaint {
 public:
  explicit Complaint(std::string_view file) : file_(file) {}
  [[nodiscard]] Error at(unsigned line, std::string_view what) const;

 private:
  std::string_view file_;
};

// The fault of a value ("must be true or false, not 3"); nothing if it has been stored.
using Wrong = std::optional<std::string>;

struct KeyRule {
  std::string_view key;
  std::function<Wrong(const toml::node&)> read;
};

// The value as an error line shows it: short, printable, on one line.
[[nodiscard]] std::string shown(const toml::node& node);
[[nodiscard]] std::string printable(std::string_view text);

// A number, whole or not; nothing where the value is none, or is infinite.
[[nodiscard]] std::optional<double> number(const toml::node& node);
[[nodiscard]] std::string range_text(double low, double high);

template <typename Place>
KeyRule flag(std::string_view key, Place& place) {
  return {key, [&place](const toml::node& node) -> Wrong {
            const auto* value = node.as_boolean();
            if (value == nullptr) return "must be true or false, not " + shown(node);
            place = value->get();
            return {};
          }};
}

// `Number` is what the place holds; both ends of the range are allowed.
template <typename Number, typename Place>
KeyRule whole(std::string_view key, Place& place, Number low, Number high) {
  return {key, [&place, low, high](const toml::node& node) -> Wrong {
            const auto* value = node.as_integer();
            if (value == nullptr || value->get() < low || value->get() > high)
              return "must be a whole number " + range_text(low, high) + ", not " + shown(node);
            place = static_cast<Number>(value->get());
            return {};
          }};
}

template <typename Place>
KeyRule real(std::string_view key, Place& place, double low, double high) {
  return {key, [&place, low, high](const toml::node& node) -> Wrong {
            const std::optional<double> value = number(node);
            if (!value || *value < low || *value > high)
              return "must be a number " + range_text(low, high) + ", not " + shown(node);
            place = *value;
            return {};
          }};
}

// Milliseconds in the text, fractions allowed; the key ends in _ms.
template <typename Place>
KeyRule milliseconds(std::string_view key, Place& place, double low, double high) {
  return {key, [&place, low, high](const toml::node& node) -> Wrong {
            const std::optional<double> value = number(node);
            if (!value || *value < low || *value > high)
              return "must be milliseconds " + range_text(low, high) + ", not " + shown(node);
            place = std::chrono::round<Duration>(std::chrono::duration<double, std::milli>(*value));
            return {};
          }};
}

[[nodiscard]] std::string wrong_word(const toml::node& node, std::span<const std::string_view> words);

// `words` must outlive the rule: a static table.
template <typename Enum, typename Place, std::size_t N>
KeyRule word(std::string_view key, Place& place, const Words<Enum, N>& words) {
  return {key, [&place, &words](const toml::node& node) -> Wrong {
            const auto* text = node.as_string();
            const std::optional<Enum> value = text != nullptr ? words.find(text->get()) : std::nullopt;
            if (!value) return wrong_word(node, words.texts());
            place = *value;
            return {};
          }};
}

// The key is a table, which is read elsewhere: any other value is wrong.
[[nodiscard]] KeyRule only_table(std::string_view key);
// A list of texts, each of 1 to `longest` bytes; at most `most`.
[[nodiscard]] KeyRule list_of_names(std::string_view key, std::vector<std::string>& place, std::size_t longest,
                                    std::size_t most);
// One glob, or a list of 1 to 100 of them, each of 1 to 200 bytes.
[[nodiscard]] KeyRule globs(std::string_view key, std::vector<std::string>& place);
inline constexpr std::size_t longest_comm = 15;  // TASK_COMM_LEN without the end
// The glob without the bytes that the kernel cuts off a name; stars are no bytes.
[[nodiscard]] std::string cut_as_comm(std::string_view glob);
// The same of names that the kernel cuts: a glob that fits longer ones only fits none.
[[nodiscard]] KeyRule globs_of_comms(std::string_view key, std::vector<std::string>& place);
[[nodiscard]] KeyRule line_of_text(std::string_view key, std::string& place, std::size_t longest);

// Applies the rules to the entries of table `name` ("model.socket"), stopping at the first mistake. An entry for which
// `other` answers true is not looked at here.
[[nodiscard]] Status read_table(const toml::table& table, std::string_view name, std::span<const KeyRule> rules,
                                const Complaint& complaint, const std::function<bool(const Entry&)>& other = {});

}  // namespace swapd::policy
