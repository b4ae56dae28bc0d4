#include "harness/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/workload.h"

namespace swapd::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

nlohmann::json line(const std::string& mechanism, const std::string& under, int hogs, double mean) {
  return {{"workload", "client-server"}, {"mechanism", mechanism}, {"under", under}, {"hogs", hogs}, {"cpus", 1},
          {"client", "fifo:50"},         {"mean_ms", mean}};
}

TEST(Plot, AxesEndAtARoundNumber) {
  EXPECT_EQ(axis_end(0), 1);
  EXPECT_EQ(axis_end(1), 1);
  EXPECT_EQ(axis_end(110), 200);
  EXPECT_EQ(axis_end(230), 250);
  EXPECT_EQ(axis_end(260), 500);
  EXPECT_EQ(axis_end(999), 1000);
}

TEST(Plot, ABarForEachMeasuredConfiguration) {
  const std::string svg = plot_bars({line("pipe", "vanilla", 0, 10), line("pipe", "vanilla", 10, 110),
                                     line("pipe", "swapd", 10, 10.5), line("sem", "vanilla", 10, 111)});
  EXPECT_THAT(svg, HasSubstr("vanilla, idle"));
  EXPECT_THAT(svg, HasSubstr("swapd, 10 hogs"));
  EXPECT_EQ(count(svg, "<rect"), 1u + 3u + 4u) << "ground, legend, bars";
  EXPECT_THAT(svg, HasSubstr(">10.5<"));
}

TEST(Plot, ACurveForEachConfigurationButNotForTheFastestAlone) {
  nlohmann::json swapd = line("sem", "swapd", 10, 1), alone = line("sem", "vanilla", 0, 1);
  swapd.update({{"samples_ms", {900, 200, 200}}, {"quantum_ms", 200.0}, {"feedback", "wait"}});
  alone.update({{"samples_ms", {200, 200, 200}}, {"quantum_ms", 200.0}, {"feedback", "wait"}, {"alone", true}});
  const std::string svg = plot_iterations({alone, swapd});
  EXPECT_EQ(count(svg, "<polyline"), 1u);
  EXPECT_EQ(count(svg, "<circle"), 3u);
  EXPECT_THAT(svg, HasSubstr("T = 200 ms"));
}

TEST(Plot, NamesAreEscaped) {
  const std::string svg =
      bars({.title = "a<b & c", .x_label = "", .y_label = "", .categories = {"x"}, .series = {{"s", {1}}}});
  EXPECT_THAT(svg, HasSubstr("a&lt;b &amp; c"));
  EXPECT_THAT(svg, Not(HasSubstr("a<b")));
}

// Half an hour has 1800 samples.
TEST(Plot, ASoakIsThinnedToWhatCanBeSeen) {
  std::vector<nlohmann::json> lines;
  for (int i = 0; i < 1800; ++i) lines.push_back({{"t_s", i}, {"swapd_cpu_share", 0.25}, {"rss_bytes", 2 << 20}});
  lines.push_back({{"mechanism", "summary"}});
  const std::string svg = plot_soak(lines);
  EXPECT_EQ(count(svg, "<circle"), 3u * 40);
  EXPECT_EQ(count(svg, "<polyline"), 3u);
}

}  // namespace
}  // namespace swapd::bench
