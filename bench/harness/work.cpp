#include "harness/work.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace swapd::bench {

namespace {

constexpr int elements = 48;

double thread_cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void sort_times(std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sort_once();
}

}  // namespace

__attribute__((noinline)) void sort_once() {
  std::array<int, elements> values;
  for (int i = 0; i < elements; ++i) values[i] = elements - i;
  for (int end = elements - 1; end > 0; --end) {
    for (int i = 0; i < end; ++i) {
      if (values[i] > values[i + 1]) std::swap(values[i], values[i + 1]);
    }
  }
  // The compiler must believe that somebody looks at the result.
  asm volatile("" : : "r"(values.data()) : "memory");
}

double calibrate() {
  constexpr int batches = 21;
  constexpr double batch_ms = 10;
  const double warm_until = thread_cpu_ms() + 30;
  std::int64_t warm = 0;
  double now = thread_cpu_ms();
  const double began = now;
  for (; now < warm_until; now = thread_cpu_ms(), ++warm) sort_once();
  const auto count = static_cast<std::int64_t>(static_cast<double>(warm) / (now - began) * batch_ms) + 1;
  std::array<double, batches> rate{};
  for (double& r : rate) {
    const double before = thread_cpu_ms();
    sort_times(count);
    r = static_cast<double>(count) / (thread_cpu_ms() - before);
  }
  std::nth_element(rate.begin(), rate.begin() + batches / 2, rate.end());
  return rate[batches / 2];
}

void Work::run_ms(double ms) const { sort_times(std::llround(ms * sorts_per_ms_)); }

bool Work::run_ms_while(double ms, const std::function<bool()>& go_on) const {
  const double step = 1;
  for (double left = ms; left > 0; left -= step) {
    if (!go_on()) return false;
    run_ms(std::min(left, step));
  }
  return go_on();
}

}  // namespace swapd::bench
