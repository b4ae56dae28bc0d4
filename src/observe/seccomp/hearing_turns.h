// Turns in being heard of, for threads that are too many to be heard of all (Observation::hear()): they go round in the
// order of ids. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "base/event.h"

namespace swapd::observe {

class HearingTurns {
 public:
  static constexpr std::size_t always_heard = 16;            // of up to so many threads all are
  static constexpr Duration turn = std::chrono::seconds(2);  // the least that one lasts
  static constexpr std::size_t least_heard = 4;              // of more threads
  static constexpr std::size_t most_at_a_time = 32;          // turns that end, or begin: that takes some 100 µs each

  // The part of the threads that is heard of, up to 1. Takes effect with the next due().
  void set_part(double part);
  // How many of so many threads are heard of at a time.
  [[nodiscard]] std::size_t room(std::size_t threads) const;
  // Whether the turns are to be given anew. all_heard: every thread is heard of.
  [[nodiscard]] bool due(Time now, bool all_heard) const { return now >= next_ && !(all_heard && part_ >= 1); }
  // Brings those to the front whose turn it is, room(threads.size()) of them.
  void give(std::vector<ThreadId>& threads, Time now);

 private:
  double part_ = 1;
  ThreadId last_;  // that has passed its turn on, in the order of ids
  Time next_{};
};

}  // namespace swapd::observe
