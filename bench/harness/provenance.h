// The origin of a run's figures, so that a line of results can be traced and recomputed.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace swapd::bench {

// Fields `version`, `commit` (of the build; "-dirty" if the tree had changes), `kernel` (uname -r), `cpu` (model and
// number), `date` (UTC, ISO 8601, now) and `command`.
[[nodiscard]] nlohmann::json provenance(std::span<const char* const> arguments);

// Adds the fields of `origin` to each line. A line that has one of them keeps its own.
void stamp(std::vector<nlohmann::json>& lines, const nlohmann::json& origin);

// --- pure, for tests ---
// The command as a reader repeats it: "swapbench" and the arguments, without --plot and its file.
[[nodiscard]] std::string command_of(std::span<const char* const> arguments);
// "MODEL, N CPUs" from the text of /proc/cpuinfo; "unknown" without a model.
[[nodiscard]] std::string cpu_of(std::string_view cpuinfo);

}  // namespace swapd::bench
