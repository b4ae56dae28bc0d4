// Watches boosts that last: how much CPU time each has used, and whether its thread spins; decide::Progress says what
// follows. Runs on the engine thread. A thread's state is sampled only where its boost has lasted some milliseconds.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/event.h"
#include "base/time.h"
#include "decide/donation.h"
#include "decide/progress.h"
#include "model/model.h"
#include "observe/observer.h"
#include "sys/perf/state_sampler.h"

namespace swapd::daemon {

class ProgressMonitor {
 public:
  ProgressMonitor(const model::Model& model, const observe::Observer& observer) : model_(model), observer_(observer) {}

  // What is lent from now on. Call before step().
  void follow(const std::vector<decide::Donation>& donations, Time now);
  [[nodiscard]] decide::Step step(ThreadId requester, ThreadId thread, Time now) const {
    return progress_.step(requester, thread, now);
  }
  // Before the model hears of it.
  void take(const Event& event);
  void forget(ThreadId thread);
  // When look() must run at the latest.
  [[nodiscard]] std::optional<Time> deadline() const { return next_look_; }
  void look(Time now);

 private:
  struct Track {
    ThreadId requester;
    Time since{};
    std::optional<Duration> seen;  // of its CPU time
    bool counts = true;            // it has a boost
    bool refused = false;          // it cannot be sampled
    std::uint64_t round = 0;
    std::unique_ptr<sys::StateSampler> sampler;
    decide::SpinJudge judge;
    bool judged = false;
  };
  void settle(ThreadId thread, Track& track, Time now);
  void sample(ThreadId thread, Track& track, Time now);
  [[nodiscard]] Time first_look(ThreadId thread, const Track& track) const;
  [[nodiscard]] Time next_look(ThreadId thread, const Track& track, Time now) const;

  const model::Model& model_;
  const observe::Observer& observer_;
  decide::Progress progress_;
  std::unordered_map<ThreadId, Track> tracks_;  // by the thread that runs
  std::size_t samplers_ = 0;
  std::uint64_t round_ = 0;
  std::optional<Time> next_look_;
  std::vector<sys::StateSample> scratch_;
};

}  // namespace swapd::daemon
