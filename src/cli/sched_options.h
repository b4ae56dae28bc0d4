// The options that name a priority: --nice N, --fifo P, --rr P, and for `set` --other.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "base/asked_priority.h"
#include "base/result.h"

namespace swapd::cli {

class SchedOptions {
 public:
  SchedOptions(CLI::App& app, bool with_other);
  // The priority that was asked for; nothing where none was given; an error where more than one was.
  [[nodiscard]] Result<std::optional<AskedPriority>> asked() const;

 private:
  int nice_ = 0;
  int fifo_ = 0;
  int rr_ = 0;
  bool other_ = false;
  CLI::Option* nice_option_ = nullptr;
  CLI::Option* fifo_option_ = nullptr;
  CLI::Option* rr_option_ = nullptr;
  CLI::Option* other_option_ = nullptr;
};

}  // namespace swapd::cli
