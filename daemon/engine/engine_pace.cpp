// How often the engine wakes: it naps where there is much to read, and rests where there is nothing to do.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "engine/engine.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {

namespace {

// The engine naps between its rounds while it uses more than one part in busy_part of a CPU.
constexpr int busy_part = 4;
constexpr int idle_part = 10;
constexpr auto shortest_nap = std::chrono::microseconds(50);
constexpr auto longest_nap = std::chrono::microseconds(400);

}  // namespace

// A record that wakes the engine costs ten times the record. Where that adds up to much of a CPU, the engine lets some
// gather, as long as it takes to use less; and so it does while a message goes along a chain that has all the help it
// needs.
void Engine::nap(Time& now, Duration least) {
  const Duration time = std::max(nap_, least);
  if (time == Duration::zero()) return;
  observer_->nap(true);
  const timespec moment{.tv_sec = 0, .tv_nsec = time.count()};
  ::nanosleep(&moment, nullptr);
  observer_->nap(false);
  now = clock_.now();
}

void Engine::pace(Time now) {
  const Duration used = sys::own_cpu_time();
  const Duration lately = used - std::exchange(cpu_used_, used);
  const Duration passed = std::max(now - std::exchange(paced_, now), options_.tick);
  if (lately > passed / busy_part) {
    nap_ = std::clamp<Duration>(2 * nap_, shortest_nap, longest_nap);
    return;
  }
  if (lately >= passed / idle_part) return;
  for (auto ticks = passed / options_.tick; ticks > 0 && nap_ > Duration::zero(); --ticks)
    nap_ = nap_ > Duration(shortest_nap) ? nap_ / 2 : Duration::zero();
}

// A tick that finds nothing to do takes the caches and the TLB of whoever had the CPU: 65 µs under a busy database.
// What ends the rest wakes the engine. (Receivers leave calls for the next tick; whoever follows the decisions hears of
// short lives too.)
bool Engine::rests() const { return receivers_.empty() && !noted(Notes::decisions) && decisions_->idle(); }

}  // namespace swapd::daemon
