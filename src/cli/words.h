// The contract's words (docs/design.md, Contracts) in plain English, and small pieces of text that several renderers
// share.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace swapd::cli {

using Json = nlohmann::ordered_json;

// Words that --observe and --format take.
inline constexpr std::array observer_words = {"auto", "bpf", "seccomp"};
inline constexpr std::array graph_words = {"dot", "json"};

// "fifo 50", "nice -5", "deadline": from {policy, nice, rt_priority}.
[[nodiscard]] std::string priority(const Json& attributes);
// "has been blocked for 12 ms": the state, with the time since it began.
// Without a time where `since` is empty.
[[nodiscard]] std::string state_phrase(std::string_view word, const std::string& since);
// The evidence for a provider, and the reason of an ineffective donation. An unknown word, as a newer swapd may send,
// is given back as it is.
[[nodiscard]] std::string evidence_phrase(std::string_view word);
[[nodiscard]] std::string reason_phrase(std::string_view word);

// A piece that the kernel does not give, why, and what swapd does instead, of `status`.
[[nodiscard]] std::string missing_piece(const Json& piece);
// How long a thread of the JSON has been in its state; empty: not known.
[[nodiscard]] std::string time_in_state(const Json& thread);

// A whole number of what a daemon, or a file, says: within reason, whatever stands there; 0 where there is none.
[[nodiscard]] long long whole(const Json& from, const char* key);

}  // namespace swapd::cli
