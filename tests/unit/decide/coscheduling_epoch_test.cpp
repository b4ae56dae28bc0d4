// Epochs [DCS97 §3.3].
#include "decide/coscheduling/epoch.h"

#include <gtest/gtest.h>

namespace swapd::decide::coscheduling {
namespace {

TEST(Epochs, ADefectorIsNotCalledBack) {
  EpochCounter stays(1), defects(2);
  defects.switched();
  EXPECT_FALSE(defects.may_call(stays.current()));
  EXPECT_TRUE(stays.may_call(defects.current()));
}

TEST(Epochs, AnEqualEpochDoesNotCall) {
  EpochCounter one(1), other(2);
  one.switched();
  other.adopt(one.current());
  EXPECT_FALSE(other.may_call(one.current()));
}

TEST(Epochs, TwoThatSwitchAtOneTimeNeverHaveTheSame) {
  EpochCounter one(1), other(2);
  one.switched();
  other.switched();
  EXPECT_NE(one.current(), other.current());
  EXPECT_TRUE(one.may_call(other.current()));
  EXPECT_FALSE(other.may_call(one.current()));
}

TEST(Epochs, AnAdoptedEpochIsThatOfTheFirstThatSwitched) {
  EpochCounter first(7), second(3), third(5);
  first.switched();
  second.adopt(first.current());
  third.adopt(second.current());
  EXPECT_EQ(third.current().cpu(), 7U);
  third.switched();
  EXPECT_EQ(third.current(), Epoch::made(2, 5));
}

TEST(Epochs, OnlyAGreaterOneIsAdopted) {
  EpochCounter counter(4);
  counter.switched();
  counter.switched();
  counter.adopt(Epoch::made(1, Epoch::max_cpu));
  EXPECT_EQ(counter.current(), Epoch::made(2, 4));
}

TEST(Epochs, TheCountComesBeforeTheCpu) { EXPECT_GT(Epoch::made(2, 0), Epoch::made(1, Epoch::max_cpu)); }

}  // namespace
}  // namespace swapd::decide::coscheduling
