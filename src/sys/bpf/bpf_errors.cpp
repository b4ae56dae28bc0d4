#include "sys/bpf/bpf_errors.h"

#include <linux/capability.h>

#include <algorithm>
#include <atomic>
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

// The capture of this thread.
struct Capture {
  int warnings = 0;  // FirstWarnings that live
  std::string text;
  bool has_objection = false;
};
Capture& capture() {
  thread_local Capture own;
  return own;
}

std::atomic<libbpf_print_fn_t> printed_before = nullptr;

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
  Capture& own = capture();
  if (own.warnings == 0) {
    const libbpf_print_fn_t print = printed_before;
    return print == nullptr ? 0 : print(level, format, arguments);
  }
  if (level != LIBBPF_WARN) return 0;
  const std::string whole = formatted(format, arguments);
  std::string_view view(whole);
  if (view.starts_with("libbpf: ")) view.remove_prefix(8);
  const auto log = view.find(log_begins);
  if (own.text.empty()) {
    own.text = view.substr(0, view.find('\n'));
  } else if (log != std::string_view::npos && !std::exchange(own.has_objection, true)) {
    const std::string_view objection = verifiers_objection(view.substr(log + log_begins.size()));
    if (!objection.empty()) own.text += " (" + std::string(objection.substr(0, longest_objection)) + ")";
  }
  return 0;
}

}  // namespace

// libbpf has one such function for all threads, and several load programs at a time: it is set once.
FirstWarning::FirstWarning() {
  static std::once_flag once;
  std::call_once(once, [] { printed_before = libbpf_set_print(&take); });
  capture() = {.warnings = capture().warnings + 1, .text = {}, .has_objection = false};
}
FirstWarning::~FirstWarning() { --capture().warnings; }

Error FirstWarning::error(int code, const std::string& doing) {
  const std::string& why = capture().text;
  return {code, why.empty() ? doing : doing + ": " + why};
}

Status check_bpf_privilege() {
  if (!has_capability(CAP_BPF)) return Error(EPERM, "CAP_BPF is missing");
  if (!has_capability(CAP_PERFMON)) return Error(EPERM, "CAP_PERFMON is missing");
  return Done{};
}

}  // namespace swapd::sys
