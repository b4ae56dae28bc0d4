// Choice of the threads that are observed, and how closely.
#include "decide/donation/attention.h"

#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::Attention;
using decide::Interest;
using decide::Look;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class AttentionTest : public testing::Test {
 protected:
  std::vector<Interest> told() {
    std::vector<Interest> out;
    attention.add_interests(out);
    return out;
  }
  Interest last() {
    const auto all = told();
    return all.empty() ? Interest{} : all.back();
  }
  std::vector<Look> looks() {
    std::vector<Look> out;
    attention.look_at_unreported(now, out);
    return out;
  }
  Vector<ThreadId> unwatched() {
    Vector<ThreadId> out;
    attention.unwatch_idle(now, std::chrono::seconds(1), out);
    return out;
  }
  Attention attention;
  Time now{std::chrono::hours(1)};
};

TEST_F(AttentionTest, ARequesterIsWatchedUrgently) {
  attention.watch_requester(p1, 1001, now);
  const Interest interest = last();
  EXPECT_EQ(interest.watch, Interest::Watch::requester);
  EXPECT_TRUE(interest.urgent);
  EXPECT_EQ(interest.tgid, 1001);
}

TEST_F(AttentionTest, WhatHasNotChangedIsNotToldAgain) {
  attention.watch_requester(p1, 1001, now);
  (void)told();
  attention.watch_requester(p1, 1001, now);
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(AttentionTest, OneThreadIsToldOnceHoweverOftenItChanges) {
  attention.watch_provider(p1, 1001, now);
  attention.trace_wakes(p1);
  EXPECT_THAT(told(), SizeIs(1));
}

TEST_F(AttentionTest, AProviderIsCalmedWhenNoWaitTreeNeedsItForAWhile) {
  attention.watch_provider(p2, 1002, now);
  (void)told();
  now += milliseconds(599);
  attention.calm(now);
  EXPECT_THAT(told(), IsEmpty());
  now += milliseconds(1);
  attention.calm(now);
  EXPECT_FALSE(last().urgent);
}

TEST_F(AttentionTest, ANeededProviderIsUrgentAgain) {
  attention.watch_provider(p2, 1002, now);
  now += std::chrono::seconds(1);
  attention.calm(now);
  (void)told();
  EXPECT_TRUE(attention.need(p2, now));
  EXPECT_TRUE(last().urgent);
}

TEST_F(AttentionTest, ARequesterIsNeverCalmedNorLeft) {
  attention.watch_provider(p1, 1001, now);
  attention.watch_requester(p1, 1001, now);
  (void)told();
  now += std::chrono::seconds(10);
  attention.calm(now);
  EXPECT_THAT(unwatched(), IsEmpty());
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(AttentionTest, AnIdleProviderIsWatchedNoMore) {
  attention.watch_provider(p2, 1002, now);
  (void)told();
  now += std::chrono::seconds(1);
  EXPECT_THAT(unwatched(), IsEmpty());
  now += milliseconds(1);
  EXPECT_THAT(unwatched(), ElementsAre(p2));
  EXPECT_EQ(last().watch, Interest::Watch::none);
  EXPECT_FALSE(attention.watches(p2));
}

TEST_F(AttentionTest, ADemotedRequesterStaysForAWhileAsAProvider) {
  attention.watch_requester(p1, 1001, now);
  attention.demote(p1);
  EXPECT_EQ(last().watch, Interest::Watch::provider);
  now += std::chrono::seconds(2);
  EXPECT_THAT(unwatched(), ElementsAre(p1));
}

TEST_F(AttentionTest, TracingOfWakesIsToldOnce) {
  attention.watch_provider(p2, 1002, now);
  attention.trace_wakes(p2);
  EXPECT_EQ(last().wakes, Interest::Wakes::told);
  attention.trace_wakes(p2);
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(AttentionTest, AThreadThatIsNotWatchedIsNotNeededNorTraced) {
  EXPECT_FALSE(attention.need(p2, now));
  attention.trace_wakes(p2);
  attention.expect(p2, p3);
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(AttentionTest, AnExpectedWaitIsLookedAtEachTick) {
  attention.watch_requester(p1, 1001, now);
  attention.expect(p1, p2);
  const Interest interest = last();
  EXPECT_EQ(interest.expected, p2);
  const auto now_looks = looks();
  ASSERT_THAT(now_looks, SizeIs(1));
  EXPECT_EQ(now_looks[0].at, Look::At::unreported);
  EXPECT_EQ(now_looks[0].since, now - milliseconds(20));
}

TEST_F(AttentionTest, PatienceHoldsForThoseWatchedAndThoseToCome) {
  attention.watch_requester(p1, 1001, now);
  (void)told();
  attention.set_patience(milliseconds(8));
  EXPECT_EQ(last().patience, milliseconds(8));
  attention.watch_provider(p2, 1002, now);
  EXPECT_EQ(last().patience, milliseconds(8));
  attention.set_patience(milliseconds(8));
  EXPECT_THAT(told(), IsEmpty()) << "the same again is no change";
}

TEST_F(AttentionTest, WhereNoThreadIsExpectedNoLookIsMade) {
  attention.watch_requester(p1, 1001, now);
  attention.expect(p1, p2);
  attention.expect(p1, {});
  EXPECT_THAT(looks(), IsEmpty());
  EXPECT_TRUE(attention.idle());
}

TEST_F(AttentionTest, AParentIsLookedAtForASecondAfterItsFork) {
  attention.watch_requester(p1, 1001, now);
  attention.forked(p1, now);
  EXPECT_THAT(looks(), SizeIs(1));
  now += std::chrono::seconds(1);
  EXPECT_THAT(looks(), IsEmpty());
}

TEST_F(AttentionTest, AForgottenThreadIsExpectedByNone) {
  attention.watch_requester(p1, 1001, now);
  attention.watch_provider(p2, 1002, now);
  attention.expect(p1, p2);
  (void)told();
  attention.forget(p2);
  EXPECT_FALSE(last().expected.valid());
  EXPECT_FALSE(attention.watches(p2));
}

}  // namespace
}  // namespace swapd::test
