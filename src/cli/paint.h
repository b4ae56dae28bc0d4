// Colours and weights for a terminal (ECMA-48, SGR). What comes from outside never carries any: see printable().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace swapd::cli {

enum class Style : std::uint8_t { plain, heading, good, warning, bad, faint };

// Off: the text as it is.
class Paint {
 public:
  explicit Paint(bool on = false) : on_(on) {}
  [[nodiscard]] std::string operator()(Style style, std::string_view text) const;

 private:
  bool on_;
};

// `never`, `always`, or `auto`: on a terminal that knows any, unless NO_COLOR says otherwise (no-color.org).
[[nodiscard]] Paint paint_for(std::string_view when, int fd);

}  // namespace swapd::cli
