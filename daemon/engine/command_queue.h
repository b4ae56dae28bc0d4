// Commands for the engine thread, from any thread. Each is carried out, by the engine or, as it ends, by close(): the
// caller waits for that.
#pragma once

#include <sys/eventfd.h>

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "engine/eventfd.h"
#include "sys/process/pi_mutex.h"

namespace swapd::daemon {

class CommandQueue {
 public:
  using Command = std::function<void()>;

  // --- any thread ---
  // False: the engine has ended, and the command is not taken.
  [[nodiscard]] bool push(Command command) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      commands_.push_back(std::move(command));
    }
    wake();
    return true;
  }
  // Wakes the engine, for commands or for something else that it looks for whenever it is awake.
  void wake() { signal_eventfd(wake_.get()); }
  [[nodiscard]] int fd() const { return wake_.get(); }  // an eventfd; signalling it is wake()

  // --- engine thread ---
  [[nodiscard]] std::vector<Command> take() {
    std::vector<Command> taken;
    const std::lock_guard lock(mutex_);
    taken.swap(commands_);
    return taken;
  }
  void clear() { clear_eventfd(wake_.get()); }
  // No command is taken from now on. Carries out those that are left.
  void close() {
    std::vector<Command> left;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      left.swap(commands_);
    }
    for (Command& command : left) command();
  }

 private:
  Fd wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  sys::PiMutex mutex_;  // held for a few moves only
  std::vector<Command> commands_;
  bool closed_ = false;
};

}  // namespace swapd::daemon
