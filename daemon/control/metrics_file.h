// --metrics FILE: status as Prometheus text, every fifteen seconds, replaced as a whole.
// Removed at an orderly end, so that no reader takes old figures for present ones.
#pragma once

#include <string>

#include "base/result.h"
#include "bus/backend.h"
#include "event/sources.h"

namespace swapd::daemon {

// Control thread.
class MetricsFile {
 public:
  MetricsFile(sd_event* loop, bus::Backend& backend, std::string path)
      : backend_(backend), path_(std::move(path)), timer_(loop, [this] { write_again(); }) {}
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  ~MetricsFile();

  // Writes it for the first time, and from then on.
  [[nodiscard]] Status begin();

 private:
  [[nodiscard]] Status write();
  void write_again();

  bus::Backend& backend_;
  std::string path_;
  bool failed_ = false;  // and said so
  Timer timer_;
};

}  // namespace swapd::daemon
