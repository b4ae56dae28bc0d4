// Asks the kernel's programs to tell of messages for the threads that deciders name (decide::Plan::called), and takes
// what they tell. Runs on the engine thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "decide/decider.h"
#include "sys/bpf/message_calls.h"
#include "sys/process/event_loop.h"

namespace swapd::daemon {

class CallListener {
 public:
  explicit CallListener(sys::EventLoop& loop) : loop_(loop) {}

  // Null: nothing tells at present.
  void use(std::shared_ptr<sys::MessageCalls> calls);
  // The threads of which a message is to be told from now on, each once. That one has come already for a thread, and
  // waits, is told with the next take(), too.
  void set(std::span<const ThreadId> threads);
  // For those that were named and have been called since the last time.
  void take(Time now, const std::function<void(const decide::MessageCalled&)>& tell);
  // take() has something to tell although no descriptor is readable.
  [[nodiscard]] bool waiting() const { return !called_.empty(); }

 private:
  sys::EventLoop& loop_;
  std::shared_ptr<sys::MessageCalls> calls_;
  sys::EventLoop::Registration ready_;
  struct Named {
    ThreadId thread;
    std::uint32_t messages = 0;  // in all, as it was named …
    std::uint32_t before = 0;    // … and that came since it was named before that
    bool listens = true;         // it has not been called
  };
  std::vector<Named> named_;                   // those of the last set() that knew them
  std::vector<decide::MessageCalled> called_;  // before they were named
};

}  // namespace swapd::daemon
