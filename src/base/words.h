// The words of an enum, in one table for printing and for reading. The words are contracts: policies, JSON and
// recordings hold them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace swapd {

template <typename Enum>
struct Word {
  std::string_view text;
  Enum value;
};

// Use words() to make one.
template <typename Enum, std::size_t N>
class Words {
 public:
  constexpr explicit Words(const Word<Enum> (&all)[N]) { std::ranges::copy(all, all_.begin()); }

  // Empty: the value is no enumerator.
  [[nodiscard]] constexpr std::string_view of(Enum value) const {
    const auto index = static_cast<std::size_t>(value);
    if (index < N && all_[index].value == value) return all_[index].text;
    const auto found = std::ranges::find(all_, value, &Word<Enum>::value);
    return found == all_.end() ? std::string_view{} : found->text;
  }
  // If two enumerators have this word: the first of the table.
  [[nodiscard]] constexpr std::optional<Enum> find(std::string_view text) const {
    const auto found = std::ranges::find(all_, text, &Word<Enum>::text);
    return found == all_.end() ? std::nullopt : std::optional(found->value);
  }
  // In the table's order.
  [[nodiscard]] constexpr std::array<std::string_view, N> texts() const {
    std::array<std::string_view, N> out;
    std::ranges::transform(all_, out.begin(), &Word<Enum>::text);
    return out;
  }

 private:
  std::array<Word<Enum>, N> all_;
};

namespace detail {

// Compilers write a value that is no enumerator as a cast: "[with auto Value = (Colour)7]".
template <auto Value>
consteval bool is_enumerator() {
  const std::string_view shown = __PRETTY_FUNCTION__;
  for (std::size_t i = 0; i + 1 < shown.size(); ++i)
    if (shown[i] == ')' && shown[i + 1] >= '0' && shown[i + 1] <= '9') return false;
  return true;
}

template <typename Enum, std::size_t... Value>
consteval bool has_words_for_all(const auto& words, std::index_sequence<Value...> /*values*/) {
  return ((!is_enumerator<static_cast<Enum>(Value)>() || !words.of(static_cast<Enum>(Value)).empty()) && ...);
}

}  // namespace detail

// The table of words<Colour>({{"red", Colour::red}, {"green", Colour::green}}). It does not compile if an enumerator
// from 0 to 63 has no word, nor if a word is empty.
template <typename Enum, std::size_t N>
[[nodiscard]] consteval Words<Enum, N> words(const Word<Enum> (&all)[N]) {
  const Words<Enum, N> table(all);
  if (!detail::has_words_for_all<Enum>(table, std::make_index_sequence<64>())) throw "an enumerator has no word";
  return table;
}

}  // namespace swapd
