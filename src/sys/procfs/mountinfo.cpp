#include "sys/procfs/mountinfo.h"

#include <sys/sysmacros.h>

#include <charconv>
#include <utility>

namespace swapd::sys {
namespace {

std::string_view take_field(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

template <typename Number>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value, base);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

// The kernel writes blanks, tabs, newlines and backslashes as \ooo.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code =
        text[i] == '\\' && i + 3 < text.size() ? whole_number<unsigned char>(text.substr(i + 1, 3), 8) : std::nullopt;
    plain += code ? static_cast<char>(*code) : text[i];
    if (code) i += 3;
  }
  return plain;
}

}  // namespace

// ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG…] - TYPE SOURCE OPTIONS
std::optional<MountEntry> parse_mount(std::string_view line) {
  const auto id = whole_number<std::uint64_t>(take_field(line, ' '));
  take_field(line, ' ');
  const auto major_number = whole_number<unsigned>(take_field(line, ':'));
  const auto minor_number = whole_number<unsigned>(take_field(line, ' '));
  if (!id || !major_number || !minor_number) return std::nullopt;
  MountEntry mount{.id = *id,
                   .dev = ::makedev(*major_number, *minor_number),
                   .root = without_escapes(take_field(line, ' ')),
                   .point = without_escapes(take_field(line, ' '))};
  std::string_view word = take_field(line, ' ');
  while (!line.empty() && word != "-") word = take_field(line, ' ');
  mount.type = take_field(line, ' ');
  mount.source = without_escapes(take_field(line, ' '));
  mount.options = take_field(line, ' ');
  if (mount.type.empty()) return std::nullopt;
  return mount;
}

std::vector<MountEntry> parse_mountinfo(std::string_view text) {
  std::vector<MountEntry> mounts;
  while (!text.empty())
    if (auto mount = parse_mount(take_field(text, '\n'))) mounts.push_back(std::move(*mount));
  return mounts;
}

std::string mount_option(std::string_view options, std::string_view key) {
  while (!options.empty()) {
    std::string_view value = take_field(options, ',');
    if (take_field(value, '=') == key) return without_escapes(value);
  }
  return {};
}

}  // namespace swapd::sys
