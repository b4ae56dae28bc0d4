// The words of a recording for the enums in it. Private to src/replay.
#pragma once

#include <array>
#include <string_view>

#include "base/event.h"
#include "base/words.h"
#include "decide/coscheduling/coscheduling_decider.h"
#include "decide/decider.h"
#include "decide/donation/provider_choice.h"
#include "model/model.h"

namespace swapd::replay {

inline constexpr auto state_words = words<model::RunState>({{"unknown", model::RunState::unknown},
                                                            {"runnable", model::RunState::runnable},
                                                            {"blocked", model::RunState::blocked}});
inline constexpr auto feedback_words =
    words<model::Feedback>({{"wait", model::Feedback::wait}, {"paper", model::Feedback::paper}});
inline constexpr auto refusal_words =
    words<decide::Refusal>({{"none", decide::Refusal::none}, {"policy", decide::Refusal::policy}});

inline constexpr auto timer_words =
    words<decide::Timer::Kind>({{"quantum", decide::Timer::Kind::quantum}, {"linger", decide::Timer::Kind::linger}});
inline constexpr auto verdict_words =
    words<decide::SpinJudge::Verdict>({{"unknown", decide::SpinJudge::Verdict::unknown},
                                       {"computes", decide::SpinJudge::Verdict::computes},
                                       {"spins", decide::SpinJudge::Verdict::spins}});
// Names of the deciders, in grants; of static storage.
inline constexpr std::array<std::string_view, 5> decider_words = {"donation", "automatic-limits", "coscheduling",
                                                                  "levels", "memory"};

[[nodiscard]] inline std::string_view word(Evidence value) { return evidence_words.of(value); }
[[nodiscard]] inline std::string_view word(model::RunState value) { return state_words.of(value); }
[[nodiscard]] inline std::string_view word(model::Feedback value) { return feedback_words.of(value); }
[[nodiscard]] inline std::string_view word(decide::CoschedulingConfig::Mode value) {
  return decide::coscheduling_mode_words.of(value);
}
[[nodiscard]] inline std::string_view word(decide::MemoryEvent::What value) {
  return decide::memory_event_words.of(value);
}
[[nodiscard]] inline std::string_view word(decide::Refusal value) { return refusal_words.of(value); }
[[nodiscard]] inline std::string_view word(decide::Timer::Kind value) { return timer_words.of(value); }
[[nodiscard]] inline std::string_view word(decide::SpinJudge::Verdict value) { return verdict_words.of(value); }

}  // namespace swapd::replay
