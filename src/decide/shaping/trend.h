// Do the values of late lie above those before them? Pure.
#pragma once

#include <cstddef>
#include <deque>

namespace swapd::decide {

class Trend {
 public:
  void restart() { values_.clear(); }
  void add(double value);
  [[nodiscard]] bool tells() const { return values_.size() >= recent + fewest_before; }
  // At the least by so much, and by more than `scatters` times what the earlier values scatter.
  [[nodiscard]] bool rises(double by, double scatters) const;
  [[nodiscard]] double late() const;  // the mean of the last ones

 private:
  [[nodiscard]] std::size_t before() const { return values_.size() > recent ? values_.size() - recent : 0; }
  [[nodiscard]] double mean(std::size_t first, std::size_t end) const;
  static constexpr std::size_t recent = 4, fewest_before = 4, most = 44;
  std::deque<double> values_;
};

}  // namespace swapd::decide
