// Measures boosts that last: how much CPU time each has used, whether its thread delivers, and whether it spins. What
// follows is for the deciders to say (decide/progress.h). Runs on the engine thread. A thread's state is sampled only
// where its boost has lasted some milliseconds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decide/decider.h"
#include "engine/sampler_opener.h"
#include "observe/observer.h"

namespace swapd::daemon {

class BoostMeter {
 public:
  // told: gets what is measured; it may not call back.
  BoostMeter(const observe::Observer& observer, std::function<void(const decide::Input&)> told);

  // The complete set from now on.
  void apply(std::span<const decide::Metered> boosts, Time now);
  // Before the model learns of it.
  void before(const Event& event);
  void forget(ThreadId thread);
  // When look() must run at the latest.
  [[nodiscard]] std::optional<Time> next() const { return next_look_; }
  void look(Time now);

 private:
  struct Track {
    decide::Metered boost;
    Time since{};
    std::optional<Duration> seen;  // of its CPU time
    bool opening = false;          // its sampler is asked for
    bool refused = false;          // it cannot be sampled
    std::uint64_t round = 0;
    [[nodiscard]] bool has_sampler() const { return opening || sampler != nullptr; }
    std::unique_ptr<sys::StateSampler> sampler;
    decide::SpinJudge judge;
    bool judged = false;
  };
  void settle(ThreadId thread, Track& track, Time now);
  void take_opened();
  void release_sampler(ThreadId thread, const Track& track);
  void sample(ThreadId thread, Track& track, Time now);
  void calm(Track& track);
  [[nodiscard]] static Time first_look(const Track& track);
  [[nodiscard]] static Time next_look(const Track& track, Time now);

  const observe::Observer& observer_;
  std::function<void(const decide::Input&)> told_;
  HashMap<ThreadId, Track> tracks_;  // by the thread that runs
  SamplerOpener opener_;
  std::size_t samplers_ = 0;  // there are, or are asked for
  std::uint64_t round_ = 0;
  std::optional<Time> next_look_;
  std::vector<sys::StateSample> scratch_;
};

}  // namespace swapd::daemon
