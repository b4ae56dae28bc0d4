// Names the thread that has ended a wait: the traced candidate that woke the requester meanwhile, or else the last
// thread that was seen to make a call on what it awaited. Pure.
#pragma once

#include <sys/types.h>

#include <deque>
#include <unordered_map>
#include <vector>

#include "base/event.h"

namespace swapd::observe {

class WakerInference {
 public:
  static constexpr std::size_t max_recent = 64;  // accesses

  // The thread made a call on the resource, or sent its signal.
  void on_access(const Resource& resource, ThreadId by, Time time) { recent_.push_back({resource, by, time}); }
  // Keeps the newest `max_recent` accesses. Once a drain: all of one drain count.
  void forget_old();
  // A traced thread woke the thread with this number.
  void on_wake(pid_t woken, ThreadId by, Time time);
  // The thread waits, from blocked.time on.
  void on_blocked(const Blocked& blocked);
  // The resources that the thread waits for have been found, or found anew.
  void on_resolved(const Blocked& blocked) { awaited_[blocked.thread] = blocked.awaited; }
  // The wait has ended: names the waker, and the resource where an access tells it. Nothing if neither is known.
  void name(Woken& woken);

  // The thread's waits are watched no more.
  void unwatch(ThreadId thread);
  // The thread has ended, or is managed no more.
  void forget(ThreadId thread);

 private:
  struct Wake {
    ThreadId by;
    Time time{};
  };
  struct Access {
    Resource resource;
    ThreadId by;
    Time time{};
  };

  std::unordered_map<pid_t, Wake> last_wake_;  // by woken tid
  std::unordered_map<ThreadId, Time> wait_start_;
  std::unordered_map<ThreadId, std::vector<Resource>> awaited_;
  std::deque<Access> recent_;
};

}  // namespace swapd::observe
