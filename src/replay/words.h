// The words of a recording for the enums in it. Private to src/replay.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/event.h"
#include "decide/decider.h"
#include "decide/donation/provider_choice.h"
#include "model/model.h"

namespace swapd::replay {

// In the order of the enum.
inline constexpr std::array<std::string_view, 9> evidence_words = {"woke",  "accessed", "sent-to", "kin",  "relayed",
                                                                   "owner", "holder",   "child",   "guess"};
inline constexpr std::array<std::string_view, 3> state_words = {"unknown", "runnable", "blocked"};
inline constexpr std::array<std::string_view, 2> feedback_words = {"wait", "paper"};
inline constexpr std::array<std::string_view, 2> refusal_words = {"none", "policy"};

inline constexpr std::array<std::string_view, 2> timer_words = {"quantum", "linger"};
inline constexpr std::array<std::string_view, 3> verdict_words = {"unknown", "computes", "spins"};
// Of the deciders, in grants; of static storage.
inline constexpr std::array<std::string_view, 2> decider_words = {"donation", "automatic-limits"};

[[nodiscard]] inline std::string_view word(decide::Timer::Kind value) {
  return timer_words.at(static_cast<std::size_t>(value));
}
[[nodiscard]] inline std::string_view word(decide::SpinJudge::Verdict value) {
  return verdict_words.at(static_cast<std::size_t>(value));
}
[[nodiscard]] inline std::string_view word(Evidence value) {
  return evidence_words.at(static_cast<std::size_t>(value));
}
[[nodiscard]] inline std::string_view word(model::RunState value) {
  return state_words.at(static_cast<std::size_t>(value));
}
[[nodiscard]] inline std::string_view word(model::Feedback value) {
  return feedback_words.at(static_cast<std::size_t>(value));
}
[[nodiscard]] inline std::string_view word(decide::Refusal value) {
  return refusal_words.at(static_cast<std::size_t>(value));
}

template <typename Enum, std::size_t N>
[[nodiscard]] std::optional<Enum> enum_of(std::string_view text, const std::array<std::string_view, N>& words) {
  for (std::size_t i = 0; i < N; ++i)
    if (words[i] == text) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace swapd::replay
