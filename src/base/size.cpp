#include "base/size.h"

#include <array>
#include <charconv>
#include <cmath>

namespace swapd {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 50;

struct Unit {
  std::string_view name;
  double factor;
};
constexpr double k = 1000, ki = 1024;
constexpr std::array units{
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"K", ki},
    Unit{"M", ki* ki},
    Unit{"G", ki* ki* ki},
    Unit{"T", ki* ki* ki* ki},
    Unit{"KiB", ki},
    Unit{"MiB", ki* ki},
    Unit{"GiB", ki* ki* ki},
    Unit{"TiB", ki* ki* ki* ki},
    Unit{"kB", k},
    Unit{"MB", k* k},
    Unit{"GB", k* k* k},
    Unit{"TB", k* k* k* k},
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<std::int64_t> parse_size(std::string_view text) {
  text = trimmed(text);
  if (text.ends_with("/s")) text.remove_suffix(2);
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (read.ec != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view unit = trimmed(text.substr(static_cast<std::size_t>(read.ptr - text.data())));
  for (const Unit& known : units) {
    if (known.name != unit) continue;
    const double bytes = number * known.factor;
    if (bytes > static_cast<double>(most)) return std::nullopt;
    return static_cast<std::int64_t>(std::llround(bytes));
  }
  return std::nullopt;
}

std::string unlikely_size(std::string_view text, bool a_second) {
  constexpr std::int64_t min_likely = 1024;
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return "";
  const auto size = parse_size(text);
  if (!size || *size == 0 || *size >= min_likely) return "";
  const std::string said(text);
  return said + " means " + said + " bytes" + (a_second ? " a second" : "") + "; write " + said + "MiB, or " + said +
         "B if that is what you want";
}

std::string size_text(std::int64_t bytes) {
  constexpr std::array<std::string_view, 5> names{"", "KiB", "MiB", "GiB", "TiB"};
  std::size_t at = 0;
  while (bytes != 0 && bytes % 1024 == 0 && at + 1 < names.size()) {
    bytes /= 1024;
    ++at;
  }
  return std::to_string(bytes) + std::string(names.at(at));
}

}  // namespace swapd
