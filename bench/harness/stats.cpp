#include "harness/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace swapd::bench {

double percentile(std::vector<double> values, double percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::pair<double, double> median_interval(std::vector<double> values) {
  if (values.empty()) return {0, 0};
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const auto left_out = static_cast<std::size_t>(std::max(1.0, std::floor((n - 1.96 * std::sqrt(n)) / 2)) - 1);
  return {values[left_out], values[values.size() - 1 - left_out]};
}

double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Summary summarize(const std::vector<double>& samples) {
  return {mean(samples), percentile(samples, 50), percentile(samples, 99), percentile(samples, 100)};
}

Summary median_of(const std::vector<Summary>& repeats) {
  const auto field = [&](double Summary::*member) {
    std::vector<double> values;
    for (const Summary& s : repeats) values.push_back(s.*member);
    return median(std::move(values));
  };
  return {field(&Summary::mean), field(&Summary::p50), field(&Summary::p99), field(&Summary::max)};
}

double ratio_of(const std::vector<Summary>& repeats, const std::vector<Summary>& beside, double Summary::*field) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(repeats.size(), beside.size()); ++i)
    if (beside[i].*field != 0) ratios.push_back(repeats[i].*field / (beside[i].*field));
  return median(std::move(ratios));
}

}  // namespace swapd::bench
