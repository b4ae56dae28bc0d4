#include "sys/perf/tracefs.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace swapd::sys {
namespace {

template <typename T>
std::optional<T> number_after(std::string_view line, std::string_view label) {
  const auto at = line.find(label);
  if (at == std::string_view::npos) return {};
  std::string_view digits = line.substr(at + label.size());
  while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end == digits.data()) return {};
  return value;
}

// "field:char comm[16];" → comm: the last word of the declaration, less its brackets.
std::string_view declared_name(std::string_view declaration) {
  if (const auto bracket = declaration.find('['); bracket != std::string_view::npos)
    declaration = declaration.substr(0, bracket);
  while (!declaration.empty() && declaration.back() == ' ') declaration.remove_suffix(1);
  const auto space = declaration.find_last_of(" *");
  return space == std::string_view::npos ? declaration : declaration.substr(space + 1);
}

std::optional<TraceField> parse_field(std::string_view line) {
  constexpr std::string_view label = "field:";
  const auto at = line.find(label);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = line.substr(at + label.size());
  const auto end = rest.find(';');
  if (end == std::string_view::npos) return {};
  const auto offset = number_after<std::uint32_t>(rest.substr(end), "offset:");
  const auto size = number_after<std::uint32_t>(rest.substr(end), "size:");
  const std::string_view name = declared_name(rest.substr(0, end));
  if (!offset || !size || name.empty()) return {};
  return TraceField{std::string(name), *offset, *size};
}

// By number: glibc has wrappers for these only since 2.36.
Result<Fd> mount_detached() {
  const Fd context(static_cast<int>(::syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
  if (!context) return errno_error("opening a tracefs");
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return errno_error("creating a tracefs");
  Fd mount(static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
  if (!mount) return errno_error("mounting a tracefs");
  return mount;
}

}  // namespace

Result<TraceField> TraceFormat::field(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &TraceField::name);
  if (found == fields.end()) return Error(ENODATA, "looking for tracepoint field " + std::string(name));
  return *found;
}

Result<TraceFormat> parse_trace_format(std::string_view text) {
  TraceFormat format;
  bool has_id = false;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("print fmt:")) break;  // may quote anything
    if (line.starts_with("ID:")) {
      const auto id = number_after<std::uint64_t>(line, "ID:");
      if (!id) return Error(EBADMSG, "reading a tracepoint's number");
      format.id = *id;
      has_id = true;
    } else if (auto field = parse_field(line)) {
      format.fields.push_back(std::move(*field));
    }
  }
  if (!has_id) return Error(EBADMSG, "reading a tracepoint's format: it has no ID");
  return format;
}

Result<Fd> open_tracefs() {
  auto own = mount_detached();
  if (own) return own;
  for (const char* path : {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"}) {
    const Fd events(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!events) continue;  // not mounted there, or not for us
    if (Fd root(::openat(events.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC)); root) return root;
  }
  return own;
}

Result<TraceFormat> read_trace_format(int tracefs, std::string_view event) {
  const std::string path = "events/" + std::string(event) + "/format";
  const Fd file(::openat(tracefs, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno_error("opening tracefs " + path);
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t n = 0; (n = ::read(file.get(), chunk.data(), chunk.size())) != 0;) {
    if (n < 0) return errno_error("reading tracefs " + path);
    text.append(chunk.data(), static_cast<std::size_t>(n));
  }
  return parse_trace_format(text);
}

}  // namespace swapd::sys
