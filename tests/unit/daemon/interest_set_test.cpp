// Interests of several deciders in one thread, and what the observer is asked for them.
#include "engine/interest_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/daemon/decision_loop_world.h"

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;
using test::p1;
using test::p2;

using decide::Interest;

class InterestSetTest : public testing::Test {
 protected:
  static Interest interest(Interest::Watch watch, bool urgent = true, ThreadId expected = {}) {
    return {.thread = p1, .tgid = 1001, .watch = watch, .urgent = urgent, .expected = expected};
  }
  bool apply(std::size_t decider, const Interest& one) { return set.apply(decider, std::vector{one}); }
  fakes::FakeObserver observer;
  InterestSet set{observer};
};

TEST_F(InterestSetTest, ANewWatchIsTold) {
  EXPECT_TRUE(apply(0, interest(Interest::Watch::provider)));
  EXPECT_FALSE(observer.watched.at(p1).requester);
  EXPECT_FALSE(apply(0, interest(Interest::Watch::requester))) << "it is known already";
  EXPECT_TRUE(observer.watched.at(p1).requester);
}

// To open a watch waits for a thread that is in execve(2): its exec is to be told before what it does then.
TEST_F(InterestSetTest, ANewRequesterIsToldOfWithTheNextDrain) {
  EXPECT_FALSE(apply(0, interest(Interest::Watch::requester)));
  EXPECT_TRUE(observer.watched.at(p1).requester);
}

TEST_F(InterestSetTest, AGrownChildIsExpectedNoMore) {
  Interest forked = interest(Interest::Watch::requester);
  forked.new_child = true;
  (void)apply(0, forked);
  observer.watched.at(p1).expected = p2;  // as the kernel's program does it
  (void)apply(0, interest(Interest::Watch::requester));
  EXPECT_FALSE(observer.watched.at(p1).expected.valid());
}

TEST_F(InterestSetTest, TheClosestLookThatAnyDeciderWantsHolds) {
  (void)apply(0, interest(Interest::Watch::provider, false));
  (void)apply(1, interest(Interest::Watch::requester, true));
  EXPECT_TRUE(observer.watched.at(p1).requester);
  EXPECT_TRUE(observer.watched.at(p1).urgent);
  (void)apply(1, interest(Interest::Watch::none));
  EXPECT_FALSE(observer.watched.at(p1).requester);
  EXPECT_FALSE(observer.watched.at(p1).urgent);
}

TEST_F(InterestSetTest, AThreadIsUnwatchedWhenTheLastDeciderLetsGo) {
  (void)apply(0, interest(Interest::Watch::provider));
  (void)apply(1, interest(Interest::Watch::provider));
  (void)apply(0, interest(Interest::Watch::none));
  EXPECT_TRUE(set.watches(p1));
  (void)apply(1, interest(Interest::Watch::none));
  EXPECT_FALSE(observer.watched.contains(p1));
}

TEST_F(InterestSetTest, AWaitStaysUntoldOnlyIfAllExpectTheSameThread) {
  (void)apply(0, interest(Interest::Watch::requester, true, p2));
  EXPECT_EQ(observer.watched.at(p1).expected, p2);
  (void)apply(1, interest(Interest::Watch::requester, true, {}));
  EXPECT_FALSE(observer.watched.at(p1).expected.valid());
}

TEST_F(InterestSetTest, TheLeastPatientDeciderIsToldInTime) {
  Interest patient = interest(Interest::Watch::requester);
  patient.patience = std::chrono::milliseconds(8);
  (void)apply(0, patient);
  EXPECT_EQ(observer.watched.at(p1).patience, std::chrono::milliseconds(8));
  patient.patience = std::chrono::milliseconds(1);
  (void)apply(1, patient);
  EXPECT_EQ(observer.watched.at(p1).patience, std::chrono::milliseconds(1));
}

TEST_F(InterestSetTest, AForgottenThreadIsNew) {
  (void)apply(0, interest(Interest::Watch::provider));
  set.forget(p1);
  EXPECT_TRUE(apply(0, interest(Interest::Watch::provider)));
}

}  // namespace
}  // namespace swapd::daemon
