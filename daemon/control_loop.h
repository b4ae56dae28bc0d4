// The control thread's event loop (sd-event). Each source that is added lives as long as the loop; an error says what
// could not be added.
#pragma once

#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include <string>

#include "base/result.h"

namespace swapd::daemon {

class ControlLoop {
 public:
  ControlLoop() = default;
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;
  ~ControlLoop() { sd_event_unref(event_); }

  [[nodiscard]] Status open() { return done(sd_event_default(&event_), "making the control thread's event loop"); }
  [[nodiscard]] sd_event* get() const { return event_; }

  // The signal must be blocked.
  [[nodiscard]] Status on_signal(int signal, sd_event_signal_handler_t handler) {
    return done(sd_event_add_signal(event_, nullptr, signal, handler, nullptr),
                "listening for signal " + std::to_string(signal));
  }
  // Calls the handler whenever the descriptor is readable. The loop's user keeps it open.
  [[nodiscard]] Status on_readable(int fd, const std::string& what, sd_event_io_handler_t handler, void* data) {
    return done(sd_event_add_io(event_, nullptr, fd, EPOLLIN, handler, data), "listening to " + what);
  }
  template <auto member, typename T>
  [[nodiscard]] Status on_readable(int fd, const std::string& what, T& object) {
    return on_readable(
        fd, what,
        [](sd_event_source*, int, std::uint32_t, void* data) {
          (static_cast<T*>(data)->*member)();
          return 0;
        },
        &object);
  }

  // Returns what exit() was called with.
  [[nodiscard]] int run() { return sd_event_loop(event_); }
  void exit(int code) { sd_event_exit(event_, code); }

 private:
  static Status done(int returned, std::string what) {
    if (returned < 0) return Error(-returned, std::move(what));
    return Done{};
  }
  sd_event* event_ = nullptr;
};

}  // namespace swapd::daemon
