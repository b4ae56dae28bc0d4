#include "sys/sched/preempt_clock.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "sys/process/self_process.h"

namespace swapd::sys {

namespace {

constexpr int priority = 1;  // real-time: below swapd's other threads, and no higher than a job's slot
constexpr Duration::rep second = 1'000'000'000;

Duration::rep now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * second + now.tv_nsec;
}

// 0 or an errno.
int bind(std::thread& thread, int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  const sched_param param{.sched_priority = priority};
  const int failed = ::pthread_setaffinity_np(thread.native_handle(), sizeof one, &one);
  return failed != 0 ? failed : ::pthread_setschedparam(thread.native_handle(), SCHED_FIFO, &param);
}

}  // namespace

void PreemptClock::run(Beat& beat) {
  name_thread("swapd-turns");
  beat.tid = own_tid();
  // Even beats would keep step with other clocks, such as that by which swapd looks at what the threads do: it would
  // see each turn's beginning, always.
  std::minstd_rand random(static_cast<unsigned>(own_tid()));
  const auto uneven = [&](Duration::rep every) {
    return every * 3 / 4 + static_cast<Duration::rep>(random()) % std::max<Duration::rep>(every / 2, 1);
  };
  Duration::rep next = now_ns();
  while (!beat.stops) {
    // One that comes late does not make up for the turns that it has missed.
    next = std::max(next + uneven(beat.every), now_ns());
    const timespec at{.tv_sec = next / second, .tv_nsec = next % second};
    (void)::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
  }
}

void PreemptClock::end(Beat& beat) {
  beat.stops = true;
  if (const pid_t tid = beat.tid; tid != 0) ended_ += own_thread_cpu_time(tid);
  if (beat.thread.joinable()) beat.thread.join();  // within one beat
}

void PreemptClock::set(const std::map<int, Duration>& wanted) {
  trouble_.clear();
  for (auto at = beats_.begin(); at != beats_.end();) {
    if (wanted.contains(at->first)) {
      ++at;
      continue;
    }
    end(*at->second);
    at = beats_.erase(at);
  }
  for (const auto& [cpu, every] : wanted) {
    if (const auto known = beats_.find(cpu); known != beats_.end()) {
      known->second->every = every.count();
      continue;
    }
    auto beat = std::make_unique<Beat>();
    beat->every = every.count();
    Beat& its = *beat;
    its.thread = std::thread([&its] { run(its); });
    if (const int failed = bind(its.thread, cpu); failed != 0) {
      end(its);
      trouble_ = "no short turns on CPU " + std::to_string(cpu) + ": " + std::strerror(failed);
      continue;
    }
    beats_.emplace(cpu, std::move(beat));
  }
}

Duration PreemptClock::cpu_time() const {
  Duration sum = ended_;
  for (const auto& [cpu, beat] : beats_)
    if (const pid_t tid = beat->tid; tid != 0) sum += own_thread_cpu_time(tid);
  return sum;
}

}  // namespace swapd::sys
