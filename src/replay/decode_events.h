// Lines of a recording that are events or inputs of deciders. Nothing: the line is of another type.
#pragma once

#include <optional>
#include <string_view>

#include "base/event.h"
#include "decide/decider.h"
#include "replay/fields.h"

namespace swapd::replay {

[[nodiscard]] std::optional<decide::Input> input(std::string_view type, Fields& f);
[[nodiscard]] std::optional<Event> event(std::string_view type, Fields& f);

}  // namespace swapd::replay
