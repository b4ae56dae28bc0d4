#include "sys/bpf_errors.h"

#include <linux/capability.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "sys/privilege.h"

namespace swapd::sys {
namespace {

std::string& text() {
  thread_local std::string text;
  return text;
}

int take(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN || !text().empty()) return 0;
  std::array<char, 256> line{};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  std::string_view view(line.data());
  if (view.starts_with("libbpf: ")) view.remove_prefix(8);
  text() = view.substr(0, view.find('\n'));
  return 0;
}

}  // namespace

FirstWarning::FirstWarning() : before_(libbpf_set_print(&take)) { text().clear(); }
FirstWarning::~FirstWarning() { libbpf_set_print(before_); }

Error FirstWarning::error(int code, const std::string& doing) {
  return {code, text().empty() ? doing : doing + ": " + text()};
}

Status check_bpf_privilege() {
  if (!has_capability(CAP_BPF)) return Error(EPERM, "CAP_BPF is missing");
  if (!has_capability(CAP_PERFMON)) return Error(EPERM, "CAP_PERFMON is missing");
  return Done{};
}

}  // namespace swapd::sys
