// The contract's words (DESIGN.md section 9) in plain English, and small pieces of text that several renderers share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace swapd::cli {

using Json = nlohmann::ordered_json;

// "fifo 50", "nice -5", "deadline": from {policy, nice, rt_priority}.
[[nodiscard]] std::string priority(const Json& attributes);
// The state, the evidence and the reason of an ineffective donation as a phrase; an unknown word is given back as it
// is.
[[nodiscard]] std::string state_phrase(std::string_view word);
[[nodiscard]] std::string evidence_phrase(std::string_view word);
[[nodiscard]] std::string reason_phrase(std::string_view word);

}  // namespace swapd::cli
