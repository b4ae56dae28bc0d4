// A private swapd for `run --embedded`: it serves one program and ends with it.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace swapd::cli {

struct Embedded {
  std::string socket;
  std::string directory;  // swapd removes it when it ends
};

// Starts it, detached from the caller, and waits until it is ready. It ends when the calling process, whatever program
// that is by then, does. `observe` is passed on.
[[nodiscard]] Result<Embedded> start_embedded(const std::string& observe, std::chrono::milliseconds timeout);

}  // namespace swapd::cli
