// Runs the model and the deciders over records, as the daemon's engine did, and compares every demand, after
// arbitration, with those of the live run.
//
// A decision is a function of what was recorded alone, so the answers must be equal, from the first snapshot on: where
// they are not, either the code has changed since the recording, or something reached the live model past the recorder.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "replay/record.h"

namespace swapd::replay {

class Replayer {
 public:
  // A change that a turn made for one requester.
  struct Change {
    Time time;
    ThreadId requester;
    const decide::Donation* donation = nullptr;  // none: it donates no more
  };
  // The first turn whose grants are not those of the live run.
  struct Difference {
    std::uint64_t line = 0;  // of the recording
    Time time;
    Granted live, replayed;
  };
  struct Totals {
    std::uint64_t events = 0, decisions = 0, donations = 0, snapshots = 0, gaps = 0, lost = 0, differing = 0;
    Time last{};
    bool ended = false;  // with its end line
  };

  explicit Replayer(std::function<void(const Change&)> on_change) : on_change_(std::move(on_change)) {}

  // line: for a Difference.
  void apply(const Record& record, std::uint64_t line);

  [[nodiscard]] const Totals& totals() const { return totals_; }
  [[nodiscard]] const std::optional<Difference>& difference() const { return difference_; }
  [[nodiscard]] const model::Model& model() const { return model_; }

 private:
  void on(const Header&, std::uint64_t) {}
  void on(const model::Settings& settings, std::uint64_t) { model_.set_settings(settings); }
  void on(const decide::DonationConfig& config, std::uint64_t) { donation_config_ = config; }
  void on(const decide::BudgetConfig& config, std::uint64_t) { budgets_ = config; }
  void on(const decide::CoschedulingConfig& config, std::uint64_t) { coscheduling_config_ = config; }
  void on(const decide::LevelsConfig& config, std::uint64_t) { levels_config_ = config; }
  void on(const decide::MemoryConfig& config, std::uint64_t) { memory_config_ = config; }
  void on(const Snapshot& snapshot, std::uint64_t line);
  void on(const Event& event, std::uint64_t line);
  void on(const decide::Input& input, std::uint64_t line);
  void on(const decide::Turn& turn, std::uint64_t line);
  void on(const Left& left, std::uint64_t line);
  void on(const Granted& granted, std::uint64_t line);
  void on(const Gap& gap, std::uint64_t line);
  void on(const End&, std::uint64_t) { totals_.ended = true; }
  void tell(Time time, const Vector<decide::Donation>& donations);
  void compare_unsaid(std::uint64_t line);
  void compare(std::uint64_t line, const Granted& live);
  void differ(std::uint64_t line, const Granted& live, Granted replayed);

  std::function<void(const Change&)> on_change_;
  model::Model model_{model::Settings{}};
  decide::DonationConfig donation_config_;
  decide::CoschedulingConfig coscheduling_config_;
  decide::LevelsConfig levels_config_;
  decide::MemoryConfig memory_config_;
  decide::BudgetConfig budgets_;
  std::unique_ptr<decide::Panel> panel_;               // from the first snapshot on
  const decide::DonationDecider* donation_ = nullptr;  // in it
  std::optional<Time> unsaid_;                         // the last turn demanded anew, and the live run has not said so
  std::optional<Granted> live_;                        // the last that the live run said
  std::map<ThreadId, decide::Donation> lending_;       // by requester: what was told of it last
  Totals totals_;
  std::optional<Difference> difference_;
};

}  // namespace swapd::replay
