#include "decide/shaping/trend.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace swapd::decide {

void Trend::add(double value) {
  values_.push_back(value);
  if (values_.size() > most) values_.pop_front();
}

double Trend::mean(std::size_t first, std::size_t end) const {
  if (first >= end) return 0;
  const auto at = [&](std::size_t i) { return values_.begin() + static_cast<std::ptrdiff_t>(i); };
  return std::accumulate(at(first), at(end), 0.0) / static_cast<double>(end - first);
}

double Trend::late() const { return mean(before(), values_.size()); }

bool Trend::rises(double by, double scatters) const {
  if (!tells()) return false;
  const double usual = mean(0, before());
  double scatter = 0;
  for (std::size_t i = 0; i < before(); ++i) scatter += std::abs(values_[i] - usual) / static_cast<double>(before());
  return late() > usual + std::max(by, scatters * scatter);
}

}  // namespace swapd::decide
