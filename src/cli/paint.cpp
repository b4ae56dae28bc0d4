#include "cli/paint.h"

#include <unistd.h>

#include <cstdlib>

namespace swapd::cli {

std::string Paint::operator()(Style style, std::string_view text) const {
  if (!on_ || style == Style::plain || text.empty()) return std::string(text);
  const char* code = "";
  switch (style) {
    case Style::plain:
      break;
    case Style::heading:
      code = "1";
      break;
    case Style::good:
      code = "32";
      break;
    case Style::warning:
      code = "33";
      break;
    case Style::bad:
      code = "1;31";
      break;
    case Style::faint:
      code = "2";
      break;
  }
  return "\033[" + std::string(code) + "m" + std::string(text) + "\033[0m";
}

Paint paint_for(std::string_view when, int fd) {
  if (when != "auto") return Paint(when == "always");
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool knows = terminal != nullptr && *terminal != '\0' && std::string_view(terminal) != "dumb";
  return Paint((no_colour == nullptr || *no_colour == '\0') && knows && ::isatty(fd) == 1);
}

}  // namespace swapd::cli
