// An entry that is used goes on being known, and one that is not is forgotten, by time and by number.
#include "base/lately_used.h"

#include <gtest/gtest.h>

#include <chrono>

namespace swapd {
namespace {

using namespace std::chrono_literals;

class LatelyUsedTest : public testing::Test {
 protected:
  LatelyUsed<int, int> known{10s, 8};
  Time now{1h};
};

TEST_F(LatelyUsedTest, WhatWasPutInIsFound) {
  EXPECT_EQ(known.find(1), nullptr);
  known.get(1, now) = 11;
  ASSERT_NE(known.find(1), nullptr);
  EXPECT_EQ(*known.find(1), 11);
  EXPECT_EQ(known.get(1, now), 11);
  EXPECT_EQ(known.size(), 1U);
}

TEST_F(LatelyUsedTest, WhatIsUsedStays) {
  known.get(1, now) = 11;
  for (int i = 0; i < 100; ++i) {
    ASSERT_NE(known.find(1), nullptr) << i;
    (void)known.get(2, now += 7s);
  }
}

TEST_F(LatelyUsedTest, WhatIsNotUsedIsGoneAfterTwiceTheTime) {
  known.get(1, now) = 11;
  for (int i = 0; i < 21; ++i) (void)known.get(2, now += 1s);
  EXPECT_EQ(known.find(1), nullptr);
  EXPECT_EQ(known.size(), 1U);
}

TEST_F(LatelyUsedTest, AfterALongPauseNothingIsKnown) {
  known.get(1, now) = 11;
  (void)known.get(2, now + 1h);
  EXPECT_EQ(known.find(1), nullptr);
}

TEST_F(LatelyUsedTest, OfTooManyThoseNotUsedGo) {
  known.get(0, now) = 7;
  for (int i = 1; i < 1000; ++i) {
    known.get(i, now) = i;
    ASSERT_NE(known.find(0), nullptr) << i;
    ASSERT_LE(known.size(), 8U) << i;
  }
}

TEST_F(LatelyUsedTest, ThereAreNoMoreThanThatThoughAllAreUsedAllTheTime) {
  for (int i = 0; i < 1000; ++i) {
    known.get(i, now) = i;
    ASSERT_LE(known.size(), 8U) << i;
    for (int used = 0; used <= i; ++used) (void)known.find(used);
  }
}

TEST_F(LatelyUsedTest, AValueStaysWhereItIs) {
  int* const value = &known.get(1, now);
  (void)known.get(2, now + 11s);
  EXPECT_EQ(known.find(1), value);
}

TEST_F(LatelyUsedTest, AnErasedOneIsNotKnownWhicheverGenerationItWasOf) {
  (void)known.get(1, now);
  (void)known.get(2, now += 11s);  // 1 is of the old one now
  known.erase(1);
  known.erase(2);
  EXPECT_EQ(known.find(1), nullptr);
  EXPECT_EQ(known.find(2), nullptr);
}

}  // namespace
}  // namespace swapd
