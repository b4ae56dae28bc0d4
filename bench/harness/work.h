// CPU work of a known length: the bubble sort of the papers' servers [SWAP04 §5.1], counted in units so small (a
// microsecond or two) that any length is a whole number of them.
#pragma once

#include <cstdint>
#include <functional>

namespace swapd::bench {

// Sorts one small array from its worst order. Constant work; no system call.
void sort_once();

// How many sorts take one millisecond of CPU time, measured on this thread in CLOCK_THREAD_CPUTIME_ID: the median of
// several short batches, so that a neighbour's burst does not count. Done once a run; after that every process does a
// constant number.
[[nodiscard]] double calibrate();

class Work {
 public:
  explicit Work(double sorts_per_ms) : sorts_per_ms_(sorts_per_ms) {}
  [[nodiscard]] double sorts_per_ms() const { return sorts_per_ms_; }
  void run_ms(double ms) const;
  // The same, but gives up when go_on(), asked about every millisecond, says no. True: all done.
  bool run_ms_while(double ms, const std::function<bool()>& go_on) const;

 private:
  double sorts_per_ms_;
};

}  // namespace swapd::bench
