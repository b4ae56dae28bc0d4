// Timers and descriptors in the control thread's loop (sd-event(3)). A source ends with its object, and calls a
// function of its owner until then. Control thread.
#pragma once

#include <systemd/sd-event.h>

#include <functional>
#include <memory>

#include "base/result.h"
#include "base/time.h"

namespace swapd::daemon {

struct EventSourceDeleter {
  void operator()(sd_event_source* source) const { sd_event_source_disable_unref(source); }
};
using EventSource = std::unique_ptr<sd_event_source, EventSourceDeleter>;

// Not running until it is told to. It may be up to a tenth of its time late, so that the loop can serve several timers
// in one wakeup. `due` may start it again, or stop it, but not destroy it.
class Timer {
 public:
  Timer(sd_event* loop, std::function<void()> due);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() = default;

  // Calls `due` once, or again and again. Another time that was set is forgotten. An error leaves the timer stopped.
  [[nodiscard]] Status start(Duration after);
  [[nodiscard]] Status repeat(Duration every);
  void stop();
  [[nodiscard]] bool running() const;

 private:
  Status arm(Duration after);
  static int on_due(sd_event_source* source, std::uint64_t now_us, void* self);

  sd_event* loop_;
  std::function<void()> due_;
  Duration every_{};  // 0: once
  EventSource source_;
};

// Calls `readable` as long as the descriptor is readable or has hung up. The descriptor must stay open.
class ReadableSource {
 public:
  ReadableSource(sd_event* loop, std::function<void()> readable);
  ReadableSource(const ReadableSource&) = delete;
  ReadableSource& operator=(const ReadableSource&) = delete;
  ~ReadableSource() = default;

  // Watches this descriptor instead of an earlier one.
  [[nodiscard]] Status watch(int fd);
  // `readable` may call these.
  void stop() { source_.reset(); }
  void pause();
  void go_on();

 private:
  static int on_readable(sd_event_source* source, int fd, std::uint32_t events, void* self);

  sd_event* loop_;
  std::function<void()> readable_;
  EventSource source_;
};

}  // namespace swapd::daemon
