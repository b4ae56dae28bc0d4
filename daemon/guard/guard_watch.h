// Starts the guard again when it has ended. Control thread.
#pragma once

#include <systemd/sd-event.h>

#include "base/fd.h"
#include "base/time.h"
#include "guard/guard.h"

namespace swapd::daemon {

class GuardWatch {
 public:
  GuardWatch(sd_event* event, Guard& guard);
  ~GuardWatch();
  GuardWatch(const GuardWatch&) = delete;
  GuardWatch& operator=(const GuardWatch&) = delete;

 private:
  void watch();
  void look_again(Duration after);
  void ended();
  void look_after();

  sd_event* event_;
  Guard& guard_;
  Fd process_;
  sd_event_source* ends_ = nullptr;
  sd_event_source* timer_ = nullptr;
  Time replaced_{};
  Duration pause_{};     // before the next one is started
  bool failed_ = false;  // and said so
};

}  // namespace swapd::daemon
