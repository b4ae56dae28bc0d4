// The next swapd, where one has ended that did not say that it would.
#pragma once

#include "base/time.h"

namespace swapd::daemon {

class GuardRespawn {
 public:
  // As GuardTask has them.
  GuardRespawn(char** command, unsigned restart_count, Time now)
      : command_(command != nullptr && *command != nullptr ? command : nullptr),
        deaths_(restart_count),
        started_(now) {}

  void give_up() { command_ = nullptr; }
  [[nodiscard]] bool is_wanted() const { return command_ != nullptr; }
  // One that ended soon after the one before is waited for, longer each time.
  void swapd_ended(Time now);
  [[nodiscard]] bool waits() const { return at_ != Time{}; }
  void start_if_due(Time now);

 private:
  char** command_;  // null: none
  unsigned deaths_;
  Time started_;
  Time at_{};  // Time{}: not
};

}  // namespace swapd::daemon
