// Sizes and rates as people write them: "64KiB", "10 MB/s", "1.5G".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace swapd {

// Bytes: a number, then nothing or B, K, M, G, T, KiB … TiB (1024 each), kB, MB, GB, TB (1000 each), then perhaps "/s".
// Nothing: none of these, or below 0 or above 2^50.
[[nodiscard]] std::optional<std::int64_t> parse_size(std::string_view text);
// The reason why such a text without a unit is hardly what is meant ("10" is ten bytes, which is written "10B"); empty:
// nothing is wrong with it. a_second: the size is a rate.
[[nodiscard]] std::string unlikely_size(std::string_view text, bool a_second);
// The shortest of these that says it exactly, in powers of 1024: "10MiB", "1000".
[[nodiscard]] std::string size_text(std::int64_t bytes);

}  // namespace swapd
