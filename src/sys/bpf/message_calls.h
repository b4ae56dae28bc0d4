// Tells when messages come for threads that wait for them on their CPUs (programs/calls.bpf.c): by sockets of any
// family, from this machine or another one, or by a wake-up. The programs see each message and each wake-up of the
// machine, some 50 ns each, so they are attached only where something is to be gained.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace swapd::sys {

class MessageCalls {
 public:
  // Loads the programs; none is attached yet. Before Linux 6.3 wake-ups alone are told. EPERM, ENOTSUP …: they cannot
  // be had here.
  [[nodiscard]] static Result<std::unique_ptr<MessageCalls>> open();
  ~MessageCalls();
  MessageCalls(const MessageCalls&) = delete;
  MessageCalls& operator=(const MessageCalls&) = delete;

  // By one thread; what follows by another one, at any time.
  [[nodiscard]] Status attach();
  void detach();

  [[nodiscard]] int fd() const;  // polls readable
  struct State {
    bool waits = false;          // a message has come since the thread received last
    std::uint32_t messages = 0;  // that have come since the programs first saw it
  };
  // The thread's next message is told, once. More than a thousand threads: those that were named long ago are
  // forgotten.
  State listen(pid_t tid);
  struct Call {
    Time time;
    pid_t tid = 0;
  };
  // Those that have come since the last call, the oldest first.
  [[nodiscard]] std::vector<Call> read();

 private:
  struct Impl;
  explicit MessageCalls(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::sys
