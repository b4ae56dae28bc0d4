// Counts what a simulation shows: for how long how many nodes run each job, and what of that is chance. Pure.
//
// The share of time in which all nodes run one job has a standard error by batch means: the counted time is cut into 20
// batches, each long against the time in which the schedule forgets its past, whose shares are nearly independent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace swapd::simulate {

struct Share {
  double mean = 0;
  double error = 0;  // standard error
};

class Tally {
 public:
  static constexpr std::size_t batches = 20;

  // `members`: nodes of each job.
  explicit Tally(const std::vector<std::uint32_t>& members);
  // Forgets all and counts from `begin` to `end`.
  void restart(Duration begin, Duration end);
  // A node has begun to run the job (+1), or ended (-1).
  void add(std::size_t job, int by, Duration now) {
    Line& line = lines_[job];
    account(line, now);
    line.running = static_cast<std::uint32_t>(static_cast<std::int64_t>(line.running) + by);
  }
  void finish(Duration now);

  // The share of the time in which k nodes ran the job.
  [[nodiscard]] std::vector<double> states(std::size_t job) const;
  // All of its nodes ran the job; all of the nodes of some job that is on more than one did.
  [[nodiscard]] Share coscheduled(std::size_t job) const;
  [[nodiscard]] Share coscheduled() const;
  // At least this part of its nodes ran the job.
  [[nodiscard]] double at_least(std::size_t job, double part) const;

 private:
  using Batches = std::array<Duration, batches>;
  struct Line {
    std::uint32_t members = 0;
    std::uint32_t running = 0;
    Duration since{};
    std::vector<Duration> time;  // by running nodes
    Batches full{};              // time in which all ran it
  };
  void account(Line& line, Duration now) {
    line.time[line.running] += now - line.since;
    if (line.running == line.members) add_full(line, now);
    line.since = now;
  }
  void add_full(Line& line, Duration now) const;
  [[nodiscard]] Share share(const Batches& full) const;

  std::vector<Line> lines_;
  Duration begin_{}, end_{};
};

}  // namespace swapd::simulate
