// Both ends of every range are valid, what lies just outside is refused, and so is a value of another type.
#include <string>

#include "unit/policy/support.h"

namespace swapd::policy::test {
namespace {

struct Range {
  const char* table;
  const char* key;
  const char* lowest;
  const char* highest;
  const char* below;
  const char* above;
};

constexpr Range ranges[] = {
    {"model", "confidence", "1", "1000", "0", "1001"},
    {"model", "quantum_ms", "0.1", "60000", "0.09", "60000.1"},
    {"model", "providers", "1", "1000", "-1", "70000"},
    {"donation", "ceiling", "1", "92", "0", "93"},
    {"donation", "ceiling_share", "0.01", "1", "0", "1.01"},
    {"donation", "ceiling_window_ms", "10", "60000", "9.9", "60001"},
    {"donation", "weight_above", "0", "10000", "-1", "10001"},
    {"donation", "linger_ms", "0", "100", "-0.1", "101"},
    {"donation", "conversation_ms", "0", "10000", "-0.1", "10001"},
    {"quota", "processes", "1", "1000000", "0", "1000001"},
    {"quota", "threads", "1", "1000000", "0", "1000001"},
    {"quota", "records", "1000", "100000000", "999", "100000001"},
    {"quota", "requests", "1", "1000000", "0", "1000001"},
    {"quota", "lent_share", "0.01", "1", "0", "1.01"},
    {"quota", "lent_window_ms", "100", "60000", "99", "60001"},
    {"observe", "budget", "0.005", "1", "0.004", "1.5"},
    {"observe", "guard_stale_ms", "20", "10000", "19", "10001"},
    {"shaping", "slice_ms", "1", "10000", "0.9", "10001"},
    {"observe", "poll_period_ms", "0.1", "1000", "0", "1000.5"},
};

std::string line(const Range& r, const char* value) {
  return "[" + std::string(r.table) + "]\n" + r.key + " = " + value + "\n";
}

TEST(PolicyRanges, BothEndsAreValid) {
  for (const Range& r : ranges) {
    accepted(line(r, r.lowest));
    accepted(line(r, r.highest));
  }
}

TEST(PolicyRanges, WhatLiesOutsideIsRefusedWithTheRange) {
  for (const Range& r : ranges) {
    for (const char* value : {r.below, r.above}) {
      const std::string said = refusal(line(r, value));
      EXPECT_TRUE(said.starts_with("p.toml:2: '" + std::string(r.key) + "' in [" + r.table + "] must be ")) << said;
      EXPECT_NE(said.find("from " + std::string(r.lowest) + " to " + r.highest + ", not " + value), std::string::npos)
          << said;
    }
  }
}

TEST(PolicyRanges, NumbersThatAreNoneAreRefused) {
  for (const Range& r : ranges)
    for (const char* value :
         {"nan", "inf", "-inf", "'20'", "true", "[1]", "{a=1}", "2004-06-27", "9223372036854775807"})
      EXPECT_NE(refusal(line(r, value)), "(accepted)") << line(r, value);
}

TEST(PolicyRanges, AWholeNumberIsNotRounded) {
  EXPECT_EQ(refusal("[model]\nconfidence = 2.5\n"),
            "p.toml:2: 'confidence' in [model] must be a whole number from 1 to 1000, not 2.5");
}

TEST(PolicyRanges, FlagsAndTexts) {
  EXPECT_EQ(refusal("[donation]\nstrict = 1\n"), "p.toml:2: 'strict' in [donation] must be true or false, not 1");
  EXPECT_EQ(refusal("[class.a]\ndescription = 1\n"), "p.toml:2: 'description' in [class.a] must be a text, not 1");
  EXPECT_EQ(refusal("[class.a]\ndescription = \"a\\nb\"\n"),
            "p.toml:2: 'description' in [class.a] must be one line of at most 200 bytes");
  EXPECT_NE(refusal("[class.a]\ndescription = '" + std::string(201, 'x') + "'\n"), "(accepted)");
  EXPECT_EQ(accepted("[class." + std::string(64, 'x') + "]\n").classes.size(), 2U);
  EXPECT_NE(refusal("[class." + std::string(65, 'x') + "]\n"), "(accepted)");
}

}  // namespace
}  // namespace swapd::policy::test
