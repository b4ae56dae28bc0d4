// Programs to become or to start: that of `run`, found as execvp(3) will find it, before anything is changed; and
// swapd.
#pragma once

#include <string>

#include "base/result.h"

namespace swapd::cli {

struct Program {
  std::string path;
  bool is_32_bit = false;  // an ELF file of class 32: its calls are not those that the filter watches
};

// ENOENT: there is none (exit 127); else it cannot be executed (exit 126). The context is a line for the user.
[[nodiscard]] Result<Program> find_program(const std::string& name);

// The swapd that belongs to this swapctl: SWAPD_BINARY; else beside it, as installed (bin and sbin) or as built; else
// in PATH.
[[nodiscard]] Result<std::string> find_swapd();

}  // namespace swapd::cli
