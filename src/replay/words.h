// The words of a recording for the enums in it. Private to src/replay.
#pragma once

#include <string_view>

#include "base/event.h"
#include "base/words.h"
#include "decide/donation.h"
#include "model/model.h"

namespace swapd::replay {

inline constexpr auto state_words = words<model::RunState>({{"unknown", model::RunState::unknown},
                                                            {"runnable", model::RunState::runnable},
                                                            {"blocked", model::RunState::blocked}});
inline constexpr auto feedback_words =
    words<model::Feedback>({{"wait", model::Feedback::wait}, {"paper", model::Feedback::paper}});
inline constexpr auto refusal_words =
    words<decide::Refusal>({{"none", decide::Refusal::none}, {"policy", decide::Refusal::policy}});

[[nodiscard]] inline std::string_view word(Evidence value) { return evidence_words.of(value); }
[[nodiscard]] inline std::string_view word(model::RunState value) { return state_words.of(value); }
[[nodiscard]] inline std::string_view word(model::Feedback value) { return feedback_words.of(value); }
[[nodiscard]] inline std::string_view word(decide::Refusal value) { return refusal_words.of(value); }

}  // namespace swapd::replay
