// The valid name that was most likely meant by an invalid one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace swapd::policy {

// How many letters must be put in, left out, changed or swapped with their neighbour to make one word the other
// (the "optimal string alignment" distance). Bytes, not characters: every valid name is ASCII.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, the first one where two are as near; empty where none shares enough letters to be meant.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// The end of an error line: "; did you mean 'quantum_ms'?", or, where nothing is near, "; valid: a, b, c".
// `open` and `close` stand around the suggested word.
[[nodiscard]] std::string suggestion(std::string_view word, std::span<const std::string_view> known,
                                     std::string_view open = "'", std::string_view close = "'");

}  // namespace swapd::policy
