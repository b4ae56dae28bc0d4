// The figures as plain SVG text. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace swapd::bench {

struct Series {
  std::string name;
  std::vector<double> values;  // one a category or step; below 0: not measured
};

struct Figure {
  std::string title, x_label, y_label;
  std::vector<std::string> categories;
  std::vector<Series> series;
};

// Grouped bars, each with its figure above it.
[[nodiscard]] std::string bars(const Figure& figure);
// One line a series over the categories.
[[nodiscard]] std::string curves(const Figure& figure);

// A round number not below the value, for the end of an axis: 1, 2, 2.5 or 5 times a power of ten.
[[nodiscard]] double axis_end(double value);

// The figures of the report lines: bars per mechanism [SWAP04 fig. 2], curves per iteration (figure 4).
[[nodiscard]] std::string plot_bars(const std::vector<nlohmann::json>& lines);
[[nodiscard]] std::string plot_iterations(const std::vector<nlohmann::json>& lines);

}  // namespace swapd::bench
