// Coscheduling: the threads of a parallel job have their CPUs at the same time, because those that wait for a mate
// without a CPU use theirs for nothing [DCS97]. Finds such jobs by itself (job_finder.h), and runs them as gangs in
// short slots, as often as their fair share allows (gang.h). Between its slots a thread has the class SCHED_IDLE, so
// that it takes nothing from those whose turn it is, and still has a CPU that no other thread wants. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "base/class_id.h"
#include "base/words.h"
#include "decide/coscheduling/gang.h"
#include "decide/coscheduling/job_finder.h"
#include "decide/decider.h"

namespace swapd::decide {

struct CoschedulingConfig {
  enum class Mode : std::uint8_t {
    off,
    automatic,  // where it is seen to help
    on,         // the class's busy threads are a parallel job wherever something competes
  };
  Mode mode = Mode::automatic;
  std::vector<Mode> classes{};  // of class 1, 2 …
  bool realtime = true;         // false: slots are given by nice -20
  int cpus = 1;                 // online
  JobFinderConfig finder;
  GangConfig gang;
  // Some class may be coscheduled.
  [[nodiscard]] bool wanted() const {
    return mode != Mode::off || std::ranges::any_of(classes, [](Mode one) { return one != Mode::off; });
  }
  [[nodiscard]] Mode of(ClassId id) const { return id == 0 || id > classes.size() ? mode : classes[id - 1]; }
};

// The values of the policy's key.
inline constexpr auto coscheduling_mode_words =
    words<CoschedulingConfig::Mode>({{"off", CoschedulingConfig::Mode::off},
                                     {"auto", CoschedulingConfig::Mode::automatic},
                                     {"on", CoschedulingConfig::Mode::on}});

class CoschedulingDecider final : public Decider {
 public:
  static constexpr std::string_view decider_name = "coscheduling";
  explicit CoschedulingDecider(CoschedulingConfig config)
      : config_(std::move(config)), finder_(config_.finder), gangs_(config_.gang) {}

  [[nodiscard]] std::string_view name() const override { return decider_name; }
  void on(const Input& input) override;
  void forget(ThreadId thread) override;
  void decide(const model::Model& model, const Turn& turn, Plan& plan) override;
  void save(StateWriter& out) const override;
  void restore(StateReader& in) override;

  [[nodiscard]] const JobFinder& finder() const { return finder_; }
  [[nodiscard]] const Gangs& gangs() const { return gangs_; }
  // The jobs that are known, for people.
  struct JobView {
    JobFinder::JobId id = 0;
    JobFinder::State state = JobFinder::State::alone;
    std::vector<JobFinder::Member> members;
    double waste = 0;  // 0…1: of its CPU time, used to wait for a thread without a CPU
    double due = 1;    // 0…1: of what its threads could use
    // While it runs in slots:
    std::vector<ThreadId> gang;  // its threads that have their CPUs in slots at present, sorted
    std::uint64_t slots = 0;
    Gangs::Gang::Refused refused{};
    Duration used{}, entitled{};
  };
  [[nodiscard]] std::vector<JobView> jobs() const;

 private:
  void take_window(const model::Model& model, Time now);
  void end_if_unheard(Time now);
  void demand(const model::Model& model, Plan& plan) const;
  void listen(Plan& plan) const;
  bool note_turns();
  void take_call(const MessageCalled& call);
  // Can be coscheduled: of a class that says so, and of the ordinary scheduling class by itself.
  [[nodiscard]] bool takes(const model::Model& model, ThreadId thread) const;

  CoschedulingConfig config_;
  JobFinder finder_;
  Gangs gangs_;
  std::vector<ThreadProfiled> window_;  // not weighed yet
  Time heard_{};                        // of the last window
  bool asked_ = false;                  // threads are being measured in this turn
  bool changed_ = false;                // what is demanded
  ShortTurns short_turns_;              // that are
};

}  // namespace swapd::decide
