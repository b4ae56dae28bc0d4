#include "harness/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace swapd::bench {

namespace {

constexpr double left = 76, right = 24, top = 84, bottom = 64, plot_height = 320;
constexpr int ticks = 5;
// Told apart by those who do not see all colours, and in print.
constexpr std::array<const char*, 8> colours = {"#999999", "#d55e00", "#0072b2", "#009e73",
                                                "#cc79a7", "#e69f00", "#56b4e9", "#000000"};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : "%.3g", value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

class Canvas {
 public:
  explicit Canvas(double width, double height) {
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
        "font-family=\"sans-serif\">\n",
        width, height, width, height);
    put("<rect width=\"%g\" height=\"%g\" fill=\"#ffffff\"/>\n", width, height);
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    put("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2, y2, colour);
  }
  void box(double x, double y, double width, double height, const char* colour) {
    put("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, width, height, colour);
  }
  void dot(double x, double y, const char* colour) {
    put("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x, y, colour);
  }
  void curve(const std::string& points, const char* colour) {
    text_ += "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + std::string(colour) + "\" points=\"" + points +
             "\"/>\n";
  }
  void label(double x, double y, const std::string& what, double size, const char* anchor, double turned = 0) {
    put("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\" text-anchor=\"%s\" transform=\"rotate(%g %.1f %.1f)\">", x, y,
        size, anchor, turned, x, y);
    text_ += escaped(what) + "</text>\n";
  }
  [[nodiscard]] std::string end() { return text_ + "</svg>\n"; }

 private:
  template <typename... Values>
  void put(const char* format, Values... values) {
    char part[512];
    std::snprintf(part, sizeof part, format, values...);
    text_ += part;
  }
  std::string text_;
};

double highest(const Figure& figure) {
  double most = 0;
  for (const Series& s : figure.series) {
    for (const double v : s.values) most = std::max(most, v);
  }
  return axis_end(most);
}

double y_of(double value, double end) { return top + plot_height * (1 - value / end); }

// What both kinds of figure share: title, axes, grid, legend.
Canvas frame(const Figure& figure, double plot_width, double end) {
  Canvas canvas(left + plot_width + right, top + plot_height + bottom);
  canvas.label(left + plot_width / 2, 26, figure.title, 16, "middle");
  for (int i = 0; i <= ticks; ++i) {
    const double value = end * i / ticks;
    canvas.line(left, y_of(value, end), left + plot_width, y_of(value, end), i == 0 ? "#000000" : "#dddddd");
    canvas.label(left - 8, y_of(value, end) + 4, number(value), 11, "end");
  }
  canvas.label(20, top + plot_height / 2, figure.y_label, 12, "middle", -90);
  canvas.label(left + plot_width / 2, top + plot_height + 48, figure.x_label, 12, "middle");
  double x = left;
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    canvas.box(x, 44, 12, 12, colours[i % colours.size()]);
    canvas.label(x + 17, 54, figure.series[i].name, 12, "start");
    x += 38 + 7.2 * static_cast<double>(figure.series[i].name.size());
  }
  return canvas;
}

// Title and legend are one row each; the figure must be wide enough for them.
double min_width(const Figure& figure) {
  double width = 0;
  for (const Series& s : figure.series) width += 38 + 7.2 * static_cast<double>(s.name.size());
  return std::max(width, 8.2 * static_cast<double>(figure.title.size()));
}

std::string series_name(const nlohmann::json& line) {
  const int hogs = line["hogs"].get<int>();
  const auto under = line["under"].get<std::string>();
  return under + (hogs == 0 ? ", idle" : ", " + std::to_string(hogs) + " hogs");
}

Series& series_of(Figure& figure, const std::string& name) {
  const auto found =
      std::find_if(figure.series.begin(), figure.series.end(), [&](const Series& s) { return s.name == name; });
  if (found != figure.series.end()) return *found;
  figure.series.push_back({name, {}});
  return figure.series.back();
}

}  // namespace

double axis_end(double value) {
  if (value <= 0) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 2.5, 5.0}) {
    if (step * power >= value) return step * power;
  }
  return 10 * power;
}

std::string bars(const Figure& figure) {
  constexpr double bar = 26;
  const double group = bar * static_cast<double>(figure.series.size()) + 24;
  const double width = std::max(group * static_cast<double>(figure.categories.size()), min_width(figure));
  const double end = highest(figure);
  Canvas canvas = frame(figure, width, end);
  for (std::size_t c = 0; c < figure.categories.size(); ++c) {
    const double begin = left + group * static_cast<double>(c) + 12;
    canvas.label(begin + (group - 24) / 2, top + plot_height + 18, figure.categories[c], 11, "middle");
    for (std::size_t s = 0; s < figure.series.size(); ++s) {
      const double value = c < figure.series[s].values.size() ? figure.series[s].values[c] : -1;
      if (value < 0) continue;
      const double x = begin + bar * static_cast<double>(s), y = y_of(value, end);
      canvas.box(x, y, bar - 2, std::max(top + plot_height - y, 1.0), colours[s % colours.size()]);
      canvas.label(x + bar / 2 - 1, y - 4, number(value), 9, "middle");
    }
  }
  return canvas.end();
}

std::string curves(const Figure& figure) {
  const double steps = static_cast<double>(std::max<std::size_t>(figure.categories.size(), 2));
  const double width = std::max(steps * 44, min_width(figure));
  const double step = width / steps;
  const double end = highest(figure);
  Canvas canvas = frame(figure, width, end);
  const auto x_of = [&](std::size_t i) { return left + step * (static_cast<double>(i) + 0.5); };
  for (std::size_t c = 0; c < figure.categories.size(); ++c) {
    canvas.label(x_of(c), top + plot_height + 18, figure.categories[c], 11, "middle");
  }
  for (std::size_t s = 0; s < figure.series.size(); ++s) {
    const char* colour = colours[s % colours.size()];
    std::string points;
    for (std::size_t i = 0; i < figure.series[s].values.size(); ++i) {
      const double y = y_of(figure.series[s].values[i], end);
      char point[48];
      std::snprintf(point, sizeof point, "%.1f,%.1f ", x_of(i), y);
      points += point;
      canvas.dot(x_of(i), y, colour);
    }
    canvas.curve(points, colour);
  }
  return canvas.end();
}

std::string plot_bars(const std::vector<nlohmann::json>& lines) {
  Figure figure{.title = "Mean time of an iteration", .x_label = "", .y_label = "ms", .categories = {}, .series = {}};
  const auto category_of = [](const nlohmann::json& line) {
    std::string name = line["mechanism"].get<std::string>();
    if (line.contains("chunk_us")) name += " " + number(line["chunk_us"].get<double>()) + " µs";
    if (line.contains("depth")) name += " depth " + std::to_string(line["depth"].get<int>());
    return name;
  };
  for (const auto& line : lines) {
    const std::string category = category_of(line);
    const auto found = std::find(figure.categories.begin(), figure.categories.end(), category);
    const auto at = static_cast<std::size_t>(found - figure.categories.begin());
    if (found == figure.categories.end()) figure.categories.push_back(category);
    Series& series = series_of(figure, series_name(line));
    series.values.resize(std::max(series.values.size(), at + 1), -1);
    series.values[at] = line["mean_ms"].get<double>();
  }
  if (!lines.empty()) {
    figure.title = lines[0]["workload"].get<std::string>() + ": mean time of an iteration, client " +
                   lines[0]["client"].get<std::string>() + ", " + std::to_string(lines[0]["cpus"].get<int>()) + " CPU";
  }
  return bars(figure);
}

std::string plot_iterations(const std::vector<nlohmann::json>& lines) {
  Figure figure{.title = "multi-server", .x_label = "iteration", .y_label = "ms", .categories = {}, .series = {}};
  for (const auto& line : lines) {
    if (line.contains("alone") || !line.contains("samples_ms")) continue;
    Series& series = series_of(figure, series_name(line));
    series.values = line["samples_ms"].get<std::vector<double>>();
    while (figure.categories.size() < series.values.size()) {
      figure.categories.push_back(std::to_string(figure.categories.size() + 1));
    }
    figure.title = "multi-server: time of each iteration, T = " + number(line["quantum_ms"].get<double>()) +
                   " ms, feedback " + line["feedback"].get<std::string>();
  }
  return curves(figure);
}

}  // namespace swapd::bench
