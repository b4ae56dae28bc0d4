// Status as Prometheus text.
#include "bus/metrics.h"

#include <gmock/gmock.h>

#include <map>
#include <regex>
#include <sstream>

#include "fakes/fake_backend.h"

namespace swapd::bus {
namespace {

using fakes::FakeBackend;
using testing::HasSubstr;

TEST(Metrics, SayWhatStatusSays) {
  FakeBackend backend;
  const std::string text = metrics_text(backend.status(), backend.classes());
  EXPECT_THAT(text, HasSubstr("# HELP swapd_donations_total Donations begun.\n"
                              "# TYPE swapd_donations_total counter\n"
                              "swapd_donations_total 17\n"));
  EXPECT_THAT(text, HasSubstr("swapd_info{version=\"0.1.0\",observer=\"seccomp\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("swapd_cpu_seconds_total{thread=\"engine\"} 1.25\n"));
  EXPECT_THAT(text, HasSubstr("swapd_cpu_seconds_total{thread=\"control\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("swapd_guard_cpu_seconds_total 0.01\n"));
  EXPECT_THAT(text, HasSubstr("swapd_budget 0.02\n"));
  EXPECT_THAT(text, HasSubstr("swapd_budget_used 0.0125\n"));
  EXPECT_THAT(text, HasSubstr("swapd_turn_wait_seconds 0.0025\n"));
  EXPECT_THAT(text, HasSubstr("swapd_patience_seconds 0.004\n"));
  EXPECT_THAT(text, HasSubstr("swapd_rivals 1\n"));
  EXPECT_THAT(text, HasSubstr("swapd_class_moved_bytes_total{class=\"backup\",device=\"vda\",way=\"read\"} 1000\n"));
  EXPECT_THAT(text, HasSubstr("swapd_class_moved_bytes_total{class=\"backup\",device=\"vda\",way=\"mapped\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("swapd_class_delayed_seconds_total{class=\"backup\",device=\"vda\"} 0.5\n"));
}

// The checks of `promtool check metrics`.
TEST(Metrics, FollowTheConventions) {
  FakeBackend backend;
  std::istringstream lines(metrics_text(backend.status(), backend.classes()));
  const std::regex help("# HELP (swapd_[a-z_]+) [A-Z].*\\."), type("# TYPE (swapd_[a-z_]+) (gauge|counter)"),
      sample("(swapd_[a-z_]+)(\\{[a-z]+=\"[^\"]*\"(,[a-z]+=\"[^\"]*\")*\\})? [0-9.e+]+");
  std::map<std::string, std::string> types;
  std::string helped;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, help)) {
      helped = found[1];
      EXPECT_FALSE(types.contains(helped)) << helped << " twice";
    } else if (std::regex_match(line, found, type)) {
      EXPECT_EQ(found[1], helped) << "each has its help before it";
      types[found[1]] = found[2];
      EXPECT_EQ(found[2] == "counter", helped.ends_with("_total")) << helped;
    } else {
      ASSERT_TRUE(std::regex_match(line, found, sample)) << line;
      EXPECT_EQ(found[1], helped);
    }
  }
  EXPECT_GE(types.size(), 20U);
}

TEST(Metrics, LabelsAreEscaped) {
  StatusView status;
  status.version = "a\"b\\c\nd";
  EXPECT_THAT(metrics_text(status, {}), HasSubstr(R"(version="a\"b\\c\nd")"));
}

}  // namespace
}  // namespace swapd::bus
