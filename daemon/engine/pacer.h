// How often the engine wakes. It ticks while there are managed threads, less often while it is idle; and where there is
// much to read it delays each batch a little, so that more records come with it.
//
// A record that wakes the engine costs ten times the record. So the delay doubles at each tick over which the engine
// used more than a quarter of a CPU (from 50 us to 400 us at most), and halves with each tick over which it used less
// than a tenth; between the two it stays. (A tick that comes early counts as one in its time.) Pure: time and CPU time
// are parameters.
#pragma once

#include <optional>

#include "base/time.h"

namespace swapd::daemon {

class Pacer {
 public:
  static constexpr Duration min_delay = std::chrono::microseconds(50);
  static constexpr Duration max_delay = std::chrono::microseconds(400);

  Pacer(Duration tick, Duration idle_tick) : tick_(tick), idle_tick_(idle_tick) {}

  // The next tick is due at `now`: something has begun that ticks look after.
  void tick_soon(Time now) { next_tick_ = now; }
  // Whether a tick is due, or as good as due: a turn in the last fifth of a tick's time spares another one. If so, the
  // next one is due a tick later.
  [[nodiscard]] bool begin_tick(Time now);
  // When the engine must wake for a tick. Time::max(): never. idle: a tick would find nothing to do.
  [[nodiscard]] Time next_tick(bool any_members, bool idle) const;

  // At each tick: the CPU time that the engine has used since it began.
  void measure(Duration cpu_used, Time now);
  // How long a turn is to wait for more records first.
  [[nodiscard]] Duration delay() const { return delay_; }
  // As long as is wanted, but not past what is due punctually.
  [[nodiscard]] static Duration before(std::optional<Time> due, Duration wanted, Time now);

 private:
  Duration tick_, idle_tick_;
  Time next_tick_{};
  Duration delay_{};
  Duration cpu_used_{};  // when it was measured last …
  Time measured_{};      // … which was then
};

}  // namespace swapd::daemon
