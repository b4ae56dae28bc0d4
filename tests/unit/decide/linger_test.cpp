// Donations that outlive their wait, and for how long.
#include "decide/donation/linger.h"

#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::Donation;
using decide::Linger;
using decide::Timer;
using decide::TimerFired;
using testing::IsEmpty;
using testing::SizeIs;

class LingerTest : public testing::Test {
 protected:
  static Donation donation(Vector<ThreadId> path, const Resource& through = r1) {
    return {.requester = p1, .attr = fifo(49), .resource = through, .path = std::move(path)};
  }
  // A wait of p1 that these providers end.
  void waits(Vector<ThreadId> path, const Resource& through = r1) {
    linger.renew({donation(std::move(path), through)});
    linger.wait_ended(p1);
  }
  std::vector<Timer> timers() {
    linger.arm();
    std::vector<Timer> out;
    linger.add_timers(out);
    return out;
  }
  TimerFired fired(Duration wall_left = milliseconds(40), bool unreported = false) {
    return {.kind = Timer::Kind::linger,
            .requester = p1,
            .serial = linger.of(p1) == nullptr ? 0 : linger.of(p1)->serial,
            .wall_left = wall_left,
            .unreported = unreported};
  }
  Duration time = milliseconds(2);
  Linger linger{{.time = [this](ThreadId) { return time; }}};
};

TEST_F(LingerTest, TheFirstWaitForAResourceLeavesNothing) {
  waits({p2});
  EXPECT_THAT(linger.all(), IsEmpty());
}

TEST_F(LingerTest, ARequesterThatComesBackKeepsItsProviderBoosted) {
  waits({p2});
  waits({p2});
  ASSERT_NE(linger.of(p1), nullptr);
  EXPECT_EQ(linger.of(p1)->donation.path, (Vector<ThreadId>{p2}));
}

TEST_F(LingerTest, AThreadThatEndedAWaitWithoutABoostIsComeBackTo) {
  linger.wait_ended(p1, p2);
  waits({p2});
  EXPECT_NE(linger.of(p1), nullptr);
}

TEST_F(LingerTest, TheFirstWaitOfAllIsNoComingBackWhicheverThreadEndsIt) {
  linger.renew({donation({p2})});
  linger.wait_ended(p1, p2);
  EXPECT_THAT(linger.all(), IsEmpty());
}

TEST_F(LingerTest, ThatAnotherThreadEndedAWaitIsNoComingBackEither) {
  linger.wait_ended(p1, p3);
  waits({p2});
  EXPECT_THAT(linger.all(), IsEmpty());
}

TEST_F(LingerTest, FourResourcesInTurnAreOneConversation) {
  for (const Resource& one : {r1, r2, r3, r4}) waits({p2}, one);
  linger.end(p1);
  waits({p2}, r1);
  EXPECT_NE(linger.of(p1), nullptr);
}

TEST_F(LingerTest, AFifthResourceOfAFifthProviderIsAnotherConversation) {
  int provider = 2;
  for (const Resource& one : {r1, r2, r3, r4, resource(5)}) waits({thread(++provider)}, one);
  linger.end(p1);
  waits({thread(3)}, r1);
  EXPECT_EQ(linger.of(p1), nullptr) << "the oldest was forgotten";
}

TEST_F(LingerTest, AServerThatAnswersOnManyConnectionsIsComeBackTo) {
  for (int connection = 5; connection < 55; ++connection) waits({p2}, resource(connection));
  linger.end(p1);
  waits({p2}, resource(60));
  EXPECT_NE(linger.of(p1), nullptr);
}

TEST_F(LingerTest, AProviderThatHasEndedIsNotComeBackTo) {
  waits({p2}, r1);
  linger.forget(p2);
  waits({p2}, r2);
  EXPECT_EQ(linger.of(p1), nullptr);
}

TEST_F(LingerTest, ATimeOfZeroIsNoLinger) {
  time = {};
  waits({p2});
  waits({p2});
  EXPECT_THAT(linger.all(), IsEmpty());
}

TEST_F(LingerTest, ARefusedDonationDoesNotLinger) {
  waits({p2});
  Donation refused = donation({p2});
  refused.refusal = decide::Refusal::policy;
  linger.renew({refused});
  linger.wait_ended(p1);
  EXPECT_THAT(linger.all(), IsEmpty());
}

TEST_F(LingerTest, TheLongestWayOfAWaitLingers) {
  waits({p2, p3, p4});
  linger.renew({donation({p2, p3, p4})});
  linger.renew({donation({p2})});
  linger.wait_ended(p1);
  EXPECT_THAT(linger.of(p1)->donation.path, SizeIs(3));
}

TEST_F(LingerTest, ANewWaitForTheSameEndsWhatLingersUnlessThatIsLonger) {
  waits({p2, p3});
  waits({p2, p3});
  linger.renew({donation({p2})});
  EXPECT_NE(linger.of(p1), nullptr) << "the new wait is about to go that way";
  linger.renew({donation({p2, p3})});
  EXPECT_EQ(linger.of(p1), nullptr);
}

TEST_F(LingerTest, AnotherDirectProviderIsAnotherWait) {
  waits({p2, p3});
  waits({p2, p3});
  linger.renew({donation({p4})});
  EXPECT_EQ(linger.of(p1), nullptr);
}

TEST_F(LingerTest, AOneStepWayHasItsWholeTimeAndAChainTheFirstHalf) {
  waits({p2});
  waits({p2});
  EXPECT_EQ(timers().front().period, milliseconds(2));
  EXPECT_EQ(timers().front().cpu_of, p2);
  linger.end(p1);
  waits({p2, p3}, r2);
  waits({p2, p3}, r2);
  EXPECT_EQ(timers().front().period, milliseconds(1));
  EXPECT_EQ(timers().front().cpu_of, p3);
}

TEST_F(LingerTest, AfterTheFirstHalfOfAChainTheWokenThreadsGoFirst) {
  waits({p2, p3});
  waits({p2, p3});
  const auto before = timers().front().serial;
  bool first_half_over = false;
  EXPECT_TRUE(linger.expired(p1, fired(), first_half_over));
  EXPECT_TRUE(first_half_over);
  EXPECT_NE(timers().front().serial, before) << "it is timed anew";
  EXPECT_FALSE(linger.expired(p1, fired(), first_half_over));
  EXPECT_FALSE(first_half_over);
  EXPECT_EQ(linger.of(p1), nullptr);
}

TEST_F(LingerTest, ARequesterThatWaitsAgainUntoldGoesOn) {
  waits({p2});
  waits({p2});
  (void)timers();
  bool half = false;
  EXPECT_TRUE(linger.expired(p1, fired(milliseconds(40), true), half));
  EXPECT_NE(linger.of(p1), nullptr);
}

TEST_F(LingerTest, AStaleTimerEndsNothing) {
  waits({p2});
  waits({p2});
  (void)timers();
  TimerFired stale = fired();
  stale.serial += 7;
  bool half = false;
  EXPECT_TRUE(linger.expired(p1, stale, half));
  EXPECT_NE(linger.of(p1), nullptr);
}

TEST_F(LingerTest, AProviderThatHasGoneEndsIt) {
  waits({p2});
  waits({p2});
  (void)timers();
  TimerFired gone = fired();
  gone.gone = true;
  bool half = false;
  EXPECT_FALSE(linger.expired(p1, gone, half));
  EXPECT_EQ(linger.of(p1), nullptr);
}

TEST_F(LingerTest, AWaitThatMovesKeepsItsHelpForAtLeastTwentyMilliseconds) {
  linger.moved(donation({p2}));
  EXPECT_EQ(timers().front().period, milliseconds(20));
  linger.end_moved(p1);
  EXPECT_THAT(linger.all(), IsEmpty());
}

TEST_F(LingerTest, AForgottenThreadIsNamedNowhere) {
  waits({p2, p3});
  waits({p2, p3});
  linger.forget(p3);
  EXPECT_THAT(linger.all(), IsEmpty());
  waits({p2});
  linger.forget(p1);
  waits({p2});
  EXPECT_THAT(linger.all(), IsEmpty()) << "what it came back to is forgotten too";
}

TEST_F(LingerTest, TheWholeWayStaysOpenWhileTheDeeperProvidersHaveDelivered) {
  waits({p2, p3});
  linger.renew({donation({p2, p3})});
  const Vector<Donation> now{donation({p2})};
  linger.renew(now);
  linger.keep_ways_open(
      now, [](ThreadId, const Resource&) { return true; }, [](ThreadId) { return true; });
  ASSERT_NE(linger.of(p1), nullptr);
  EXPECT_THAT(linger.of(p1)->donation.path, SizeIs(2));
}

}  // namespace
}  // namespace swapd::test
