// Records to the lines of a recording (docs/recording.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/record.h"

namespace swapd::replay {

class Encoder {
 public:
  // start: what times are written relative to.
  explicit Encoder(Time start = {}) : start_(start) {}

  void add(std::string& out, const Header& header);
  void add(std::string& out, const model::Settings& settings);
  void add(std::string& out, const decide::DonationConfig& config);
  void add(std::string& out, const decide::CoschedulingConfig& config);
  void add(std::string& out, const decide::LevelsConfig& config);
  void add(std::string& out, const decide::MemoryConfig& config);
  void add(std::string& out, const decide::BudgetConfig& config);
  void add(std::string& out, const Snapshot& snapshot);  // several lines
  void add(std::string& out, const Event& event);
  void add(std::string& out, const decide::Input& input);
  void add(std::string& out, const decide::Turn& turn);
  void add(std::string& out, const Left& left);
  void add(std::string& out, const Granted& granted);
  void add(std::string& out, const Gap& gap);
  void add(std::string& out, const End& end);
  void add(std::string& out, const Record& record);

 private:
  [[nodiscard]] std::int64_t since_start(Time time) const { return (time - start_).count(); }

  Time start_;
  std::optional<Granted> before_;  // the last one since a snapshot
};

}  // namespace swapd::replay
