// Commands for the engine thread, from any thread. Each is carried out, by the engine or, as it ends, by close(): the
// caller waits for that.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "sys/process/eventfd.h"
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
      sys::signal_eventfd(called_.get());  // under the lock, as it is cleared: it tells of these commands
    }
    wake();
    return true;
  }
  // Wakes the engine, for commands or for something else that it looks for whenever it is awake.
  void wake() { sys::signal_eventfd(wake_.get()); }
  [[nodiscard]] int fd() const { return wake_.get(); }  // an eventfd; signalling it is wake()

  // --- engine thread ---
  [[nodiscard]] std::vector<Command> take() {
    std::vector<Command> taken;
    const std::lock_guard lock(mutex_);
    taken.swap(commands_);
    if (!taken.empty()) sys::clear_eventfd(called_.get());
    return taken;
  }
  // For so long, or until there is a command.
  void rest(Duration time) const {
    const timespec moment{.tv_sec = time / std::chrono::seconds(1),
                          .tv_nsec = (time % std::chrono::seconds(1)).count()};
    pollfd wait{called_.get(), POLLIN, 0};
    (void)::ppoll(&wait, 1, &moment, nullptr);
  }
  void clear() { sys::clear_eventfd(wake_.get()); }
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
  Fd called_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};  // readable while there are commands
  sys::PiMutex mutex_;                                   // held for a few moves only
  std::vector<Command> commands_;
  bool closed_ = false;
};

}  // namespace swapd::daemon
