#include "base/weight.h"

#include <gtest/gtest.h>

#include <array>

namespace swapd {
namespace {

SchedAttr nice(int value, SchedPolicy policy = SchedPolicy::other) {
  SchedAttr attr;
  attr.policy = policy;
  attr.nice = static_cast<std::int8_t>(value);
  return attr;
}

TEST(Weight, TheUsualWeightIsNiceZero) { EXPECT_EQ(nice_of_weight(usual_weight), 0); }

TEST(Weight, EachNiceStepIsAQuarterMore) {
  EXPECT_EQ(nice_of_weight(125), -1);
  EXPECT_EQ(nice_of_weight(156), -2);
  EXPECT_EQ(nice_of_weight(80), 1);
  EXPECT_EQ(nice_of_weight(1000), -10);
}

// kernel/sched/core.c, sched_prio_to_weight, where 1024 is nice 0.
TEST(Weight, ItIsTheInverseOfTheKernelsTable) {
  constexpr std::array<int, 40> kernel = {88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
                                          9548,  7620,  6100,  4904,  3906,  3121,  2501,  1991,  1586,  1277,
                                          1024,  820,   655,   526,   423,   335,   272,   215,   172,   137,
                                          110,   87,    70,    56,    45,    36,    29,    23,    18,    15};
  for (int value = -20; value < 20; ++value)
    EXPECT_EQ(nice_of_weight(100.0 * kernel.at(static_cast<std::size_t>(value + 20)) / 1024), value);
}

TEST(Weight, NiceValuesEndAtTwentyAndNineteen) {
  EXPECT_EQ(nice_of_weight(10'000), -20);
  EXPECT_EQ(nice_of_weight(1'000'000), -20);
  EXPECT_EQ(nice_of_weight(1), 19);
}

TEST(Weight, AThreadCountsAsTheWeightOfItsGroup) {
  EXPECT_EQ(raised_by(nice(0), 1000), nice(-10));
  EXPECT_EQ(raised_by(nice(0, SchedPolicy::batch), 1000), nice(-10, SchedPolicy::batch));
}

TEST(Weight, ItsOwnNiceValueComesOnTop) {
  EXPECT_EQ(raised_by(nice(-5), 1000), nice(-15));
  EXPECT_EQ(raised_by(nice(15), 1000), nice(5)) << "a niced helper of an important group is not that important";
  EXPECT_EQ(raised_by(nice(-15), 1000), nice(-20));
}

TEST(Weight, OnlyTheDifferenceToTheOtherGroupCounts) {
  EXPECT_EQ(raised_by(nice(0), 1000, 1000), nice(0)) << "both are in the group";
  EXPECT_EQ(raised_by(nice(0), 2000, 1000), nice(-3));
  EXPECT_EQ(raised_by(nice(0), 1000, 20), nice(-18));
}

TEST(Weight, NoThreadIsLessImportantByIt) { EXPECT_EQ(raised_by(nice(-5), 20, 1000), nice(-5)); }

TEST(Weight, ARealTimeThreadIsWhatItIs) {
  SchedAttr fifo;
  fifo.policy = SchedPolicy::fifo;
  fifo.rt_priority = 10;
  EXPECT_EQ(raised_by(fifo, 10'000), fifo);
}

TEST(Weight, AnIdleThreadAsksForNothing) {
  EXPECT_EQ(raised_by(nice(0, SchedPolicy::idle), 10'000), nice(0, SchedPolicy::idle));
}

}  // namespace
}  // namespace swapd
