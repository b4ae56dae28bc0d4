// Starts the guard again when it has ended. Control thread.
#pragma once

#include "base/fd.h"
#include "base/time.h"
#include "event/sources.h"
#include "guard/guard.h"

namespace swapd::daemon {

class GuardWatch {
 public:
  GuardWatch(sd_event* event, Guard& guard);
  ~GuardWatch() = default;
  GuardWatch(const GuardWatch&) = delete;
  GuardWatch& operator=(const GuardWatch&) = delete;

 private:
  void watch();
  void look_again(Duration after);
  void ended();
  void look_after();

  Guard& guard_;
  Fd process_;
  Time replaced_{};
  Duration pause_{};     // before the next one is started
  bool failed_ = false;  // and said so
  ReadableSource ends_;  // of process_
  Timer timer_;
};

}  // namespace swapd::daemon
