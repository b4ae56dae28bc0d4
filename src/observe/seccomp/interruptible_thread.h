// A thread that blocks in a system call without a timeout, and that stop() brings out of it.
//
// stop() sends the thread a real-time signal whose handler does nothing and has no SA_RESTART, until the thread has
// ended: a signal that comes between the look at stopping() and the call is wasted. The thread gets no other signal.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/result.h"

namespace swapd::observe {

class InterruptibleThread {
 public:
  InterruptibleThread() = default;
  InterruptibleThread(const InterruptibleThread&) = delete;
  InterruptibleThread& operator=(const InterruptibleThread&) = delete;
  ~InterruptibleThread() { stop(); }

  // Once; returns when the thread has its name and, if the privileges allow it, its nice value. The body looks at
  // stopping() when a call of it was interrupted. EAGAIN: there may be no more threads.
  [[nodiscard]] Status start(const char* name, int nice, std::function<void()> body);
  // Ends the thread and waits for its end. Nothing if there is none.
  void stop();

  [[nodiscard]] bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  // Started and not stopped, and the body has not returned: until then the tid is this thread's.
  [[nodiscard]] bool running() const { return started_ && ended_.load() == 0; }
  [[nodiscard]] pid_t tid() const { return tid_.load(); }  // 0: never started

 private:
  void run(const char* name, int nice, const std::function<void()>& body);

  std::function<void()> main_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int32_t> ended_{0};  // a futex
  std::atomic<pid_t> tid_{0};
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace swapd::observe
