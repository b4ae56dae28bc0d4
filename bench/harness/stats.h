// Summaries of samples. Pure.
#pragma once

#include <utility>
#include <vector>

namespace swapd::bench {

struct Summary {
  double mean = 0, p50 = 0, p99 = 0, max = 0;
};

// The nearest-rank percentile; 0 of nothing.
[[nodiscard]] double percentile(std::vector<double> values, double percent);
[[nodiscard]] double median(std::vector<double> values);  // the mean of the middle two where they are two
// Where the median of all that could have been drawn lies, with 95 % certainty: of the ordered values two as far from
// the middle as the sign test has them. All of them where there are few.
[[nodiscard]] std::pair<double, double> median_interval(std::vector<double> values);
[[nodiscard]] double mean(const std::vector<double>& values);
[[nodiscard]] Summary summarize(const std::vector<double>& samples);
// Field by field the median over the repeats.
[[nodiscard]] Summary median_of(const std::vector<Summary>& repeats);
// Of the ratios of each repeat to the one beside it, the median: a machine that slows down meets both of a pair alike.
[[nodiscard]] double ratio_of(const std::vector<Summary>& repeats, const std::vector<Summary>& beside,
                              double Summary::*field);

}  // namespace swapd::bench
