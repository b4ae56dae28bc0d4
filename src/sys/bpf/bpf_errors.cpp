#include "sys/bpf/bpf_errors.h"

#include <linux/capability.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

#include "sys/bpf/bpf_pieces.h"
#include "sys/process/privilege.h"

namespace swapd::sys {
namespace {

std::string& text() {
  thread_local std::string text;
  return text;
}

bool& has_objection() {
  thread_local bool has = false;
  return has;
}

int& captures() {
  thread_local int captures = 0;
  return captures;
}

libbpf_print_fn_t printed_before = nullptr;

constexpr std::string_view log_begins = "-- BEGIN PROG LOAD LOG --\n";
constexpr std::size_t longest_objection = 160;

std::string formatted(const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  std::string out(static_cast<std::size_t>(std::max(size, 0)), '\0');
  std::vsnprintf(out.data(), out.size() + 1, format, arguments);
  return out;
}

// The verifier's log follows the warning that a program was refused.
int take(libbpf_print_level level, const char* format, va_list arguments) {
  if (captures() == 0) return printed_before == nullptr ? 0 : printed_before(level, format, arguments);
  if (level != LIBBPF_WARN) return 0;
  const std::string whole = formatted(format, arguments);
  std::string_view view(whole);
  if (view.starts_with("libbpf: ")) view.remove_prefix(8);
  const auto log = view.find(log_begins);
  if (text().empty()) {
    text() = view.substr(0, view.find('\n'));
  } else if (log != std::string_view::npos && !std::exchange(has_objection(), true)) {
    const std::string_view objection = verifiers_objection(view.substr(log + log_begins.size()));
    if (!objection.empty()) text() += " (" + std::string(objection.substr(0, longest_objection)) + ")";
  }
  return 0;
}

}  // namespace

// libbpf has one such function for all threads, and several load programs at a time: it is set once.
FirstWarning::FirstWarning() {
  static std::once_flag once;
  std::call_once(once, [] { printed_before = libbpf_set_print(&take); });
  ++captures();
  text().clear();
  has_objection() = false;
}
FirstWarning::~FirstWarning() { --captures(); }

Error FirstWarning::error(int code, const std::string& doing) {
  return {code, text().empty() ? doing : doing + ": " + text()};
}

Status check_bpf_privilege() {
  if (!has_capability(CAP_BPF)) return Error(EPERM, "CAP_BPF is missing");
  if (!has_capability(CAP_PERFMON)) return Error(EPERM, "CAP_PERFMON is missing");
  return Done{};
}

}  // namespace swapd::sys
