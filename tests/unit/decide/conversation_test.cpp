// Threads that keep waiting for each other: who belongs to a conversation, and for how long.
#include "decide/donation/conversation.h"

#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::Conversation;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ConversationTest : public testing::Test {
 protected:
  static constexpr Duration lasts = milliseconds(500);
  // p1 waits for p2, that often, `apart` from each other.
  void waits(int times, Duration apart = milliseconds(10)) { waits(p1, p2, times, apart); }
  void waits(ThreadId requester, ThreadId provider, int times, Duration apart = milliseconds(10), int rank = 30) {
    for (int i = 0; i < times; ++i) {
      now += apart;
      conversation.wait_ended(ended(requester, provider, rank));
    }
  }
  [[nodiscard]] Conversation::Ended ended(ThreadId requester, ThreadId provider, int rank = 30) const {
    return {.time = now, .requester = requester, .provider = provider, .rank = rank, .through = r1, .lasts = lasts};
  }
  // It asks or answers.
  [[nodiscard]] bool has(ThreadId thread) const {
    const auto& asking = conversation.asking();
    const auto asks = asking.find(thread);
    return (asks != asking.end() && asks->second.joined()) || conversation.answers_for(thread).valid();
  }
  Conversation conversation;
  Time now{std::chrono::hours(1)};
};

TEST_F(ConversationTest, AFewWaitsAreNone) {
  waits(3);
  EXPECT_FALSE(has(p1));
  EXPECT_FALSE(has(p2));
}

TEST_F(ConversationTest, FourWaitsInAQuarterOfASecondAreOne) {
  waits(4);
  EXPECT_TRUE(has(p1)) << "who waits";
  EXPECT_TRUE(has(p2)) << "who ends the waits";
  EXPECT_EQ(conversation.answers_for(p2), p1);
  EXPECT_EQ(conversation.answers_for(p1), ThreadId{});
}

TEST_F(ConversationTest, FourWaitsInASecondAreNone) {
  waits(8, milliseconds(200));
  EXPECT_FALSE(has(p2));
}

// A connection pool: the last of the requester's wakers, which is what its slot tells, is seldom the same one.
TEST_F(ConversationTest, OneOfManyThatAnswerJoinsByTheWorkThatItIsSent) {
  conversation.wait_ended(ended(p1, p2));
  now += milliseconds(200);
  Conversation::Ended work = ended(p1, p2);
  work.waits = 100;
  conversation.served(work);
  EXPECT_EQ(conversation.answers_for(p2), p1);
  EXPECT_FALSE(conversation.only_serves(p2));
  for (int i = 0; i < 40; ++i) {
    now += milliseconds(200);
    work.time = now;
    conversation.served(work);
    conversation.end_what_is_over(now);
  }
  EXPECT_EQ(conversation.answers_for(p2), p1) << "eight seconds after its last answer";
}

TEST_F(ConversationTest, WhoIsOnlySentWorkAnswersNoMore) {
  waits(p1, p2, 4);
  Conversation::Ended work = ended(p1, p2);
  work.waits = 100;
  for (int i = 0; i < 60; ++i) {
    now += milliseconds(200);
    work.time = now;
    conversation.served(work);
    conversation.end_what_is_over(now);
  }
  EXPECT_EQ(conversation.answers_for(p2), ThreadId{}) << "it takes what is logged, and no one waits for it";
}

TEST_F(ConversationTest, WhoHasNeverAnsweredDoesNotJoinSo) {
  Conversation::Ended work = ended(p1, p2);
  work.waits = 100;
  conversation.served(work);
  EXPECT_EQ(conversation.answers_for(p2), ThreadId{});
}

TEST_F(ConversationTest, WhatOneRequesterSendsKeepsNoneUpForAnother) {
  waits(p1, p2, 4);
  Conversation::Ended work = ended(p3, p2);
  work.waits = 100;
  now += milliseconds(400);
  work.time = now;
  conversation.served(work);
  now += milliseconds(200);
  conversation.end_what_is_over(now);
  EXPECT_EQ(conversation.answers_for(p2), ThreadId{});
}

// Not all parts are looked at each time.
TEST_F(ConversationTest, OneEndsAlthoughAnotherGoesOn) {
  waits(4);
  waits(p3, p4, 4);
  for (int i = 0; i < 8; ++i) {
    conversation.end_what_is_over(now);
    waits(p3, p4, 1, milliseconds(50));
  }
  EXPECT_TRUE(has(p1)) << "440 ms after its last wait";
  waits(p3, p4, 1, milliseconds(70));
  conversation.end_what_is_over(now);
  EXPECT_FALSE(has(p1));
  EXPECT_TRUE(has(p3));
}

TEST_F(ConversationTest, WaitsForManyThreadsCountForTheOneThatWaits) {
  waits(p1, p2, 2);
  waits(p1, p3, 2);
  EXPECT_TRUE(has(p1));
  EXPECT_FALSE(has(p2));
  EXPECT_FALSE(has(p3));
}

TEST_F(ConversationTest, ItIsOverWhenNothingHasBeenToldForItsTime) {
  waits(4);
  conversation.end_what_is_over(now + lasts - milliseconds(1));
  EXPECT_TRUE(has(p2));
  conversation.end_what_is_over(now + lasts);
  EXPECT_FALSE(has(p1));
  EXPECT_FALSE(has(p2));
  EXPECT_TRUE(conversation.empty());
}

TEST_F(ConversationTest, OneToldWaitKeepsItUp) {
  waits(4);
  waits(1, milliseconds(400));
  conversation.end_what_is_over(now + milliseconds(400));
  EXPECT_TRUE(has(p1));
  EXPECT_TRUE(has(p2));
}

TEST_F(ConversationTest, AThreadThatHasNotJoinedIsForgottenWithItsWindow) {
  waits(3);
  conversation.end_what_is_over(now + Conversation::window);
  EXPECT_TRUE(conversation.empty());
}

TEST_F(ConversationTest, OfTwoRequestersTheMoreImportantOneCounts) {
  waits(p1, p2, 4, milliseconds(10), 40);
  waits(p3, p2, 4, milliseconds(10), 25);
  EXPECT_EQ(conversation.answers_for(p2), p1);
  (void)conversation.take_changed();
  waits(p4, p2, 1, milliseconds(10), 41);
  EXPECT_THAT(conversation.take_changed(), ElementsAre(p2));
  EXPECT_EQ(conversation.answers_for(p2), p4);
}

TEST_F(ConversationTest, WaitsThatWereNotToldCountTogether) {
  auto several = ended(p1, p2);
  several.waits = Conversation::enough;
  conversation.wait_ended(several);
  EXPECT_TRUE(has(p1));
  EXPECT_TRUE(has(p2));
}

TEST_F(ConversationTest, AThreadThatWasHelpedOnTheWayAnswersTooAtOnce) {
  waits(4);
  conversation.helped(ended(p1, p3));
  EXPECT_EQ(conversation.answers_for(p3), p1);
}

// The loan of p1 does not go on because p3 goes on.
TEST_F(ConversationTest, AnotherRequestersWaitsKeepNothingUpForOneThatIsSilent) {
  waits(p1, p2, 4, milliseconds(10), 40);
  const Time last = now;
  waits(p3, p2, 40, milliseconds(20), 25);
  conversation.end_what_is_over(last + lasts);
  EXPECT_FALSE(has(p2));
  waits(p3, p2, 4, milliseconds(10), 25);
  EXPECT_EQ(conversation.answers_for(p2), p3);
}

TEST_F(ConversationTest, WhoWakesAThreadThatAnswersSupportsIt) {
  waits(4);
  conversation.supported(ended(p1, p3));
  EXPECT_TRUE(conversation.supporting().at(p3).joined());
  EXPECT_FALSE(has(p3)) << "nothing is lent to it";
  conversation.end_what_is_over(now + lasts);
  EXPECT_THAT(conversation.supporting(), IsEmpty());
}

TEST_F(ConversationTest, WhoSupportsWorksForTheRequesterThatEndsItsWaits) {
  waits(4);
  conversation.served(ended(p4, p3));
  EXPECT_EQ(conversation.answers_for(p3), ThreadId{}) << "it does not support yet";
  conversation.supported(ended(p1, p3));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(conversation.answers_for(p3), ThreadId{});
    conversation.served(ended(p4, p3));
  }
  EXPECT_EQ(conversation.answers_for(p3), p4);
}

TEST_F(ConversationTest, WhoSupportsGoesOnServingAlthoughItsLastAnswerIsLongAgo) {
  waits(p4, p3, 4);
  for (int i = 0; i < 60; ++i) {
    now += milliseconds(200);
    conversation.supported(ended(p1, p3));
    conversation.served(ended(p4, p3));
    conversation.end_what_is_over(now);
    ASSERT_EQ(conversation.answers_for(p3), p4) << 200 * i << " ms";
  }
  EXPECT_TRUE(conversation.only_serves(p3));
}

TEST_F(ConversationTest, AThreadThatAnswersARequesterIsNotTakenFromItByOneThatOnlySends) {
  waits(p1, p3, 4);
  conversation.supported(ended(p2, p3));
  for (int i = 0; i < 8; ++i) conversation.served(ended(p4, p3, 40));
  EXPECT_EQ(conversation.answers_for(p3), p1);
  EXPECT_FALSE(conversation.only_serves(p3));
}

TEST_F(ConversationTest, AThreadThatServesAnswersFullyOnceAWaitForItHasEnded) {
  conversation.supported(ended(p1, p3));
  for (int i = 0; i < 4; ++i) conversation.served(ended(p4, p3));
  EXPECT_TRUE(conversation.only_serves(p3));
  waits(p4, p3, 1);
  EXPECT_FALSE(conversation.only_serves(p3));
}

TEST_F(ConversationTest, ARequesterDoesNotAnswerItself) {
  waits(p1, p1, 8);
  EXPECT_TRUE(conversation.empty());
  waits(4);
  conversation.helped(ended(p1, p1));
  EXPECT_EQ(conversation.answers_for(p1), ThreadId{});
}

TEST_F(ConversationTest, WithoutATimeThereIsNone) {
  for (int i = 0; i < 8; ++i) conversation.wait_ended({.time = now, .requester = p1, .provider = p2, .rank = 30});
  EXPECT_TRUE(conversation.empty());
}

TEST_F(ConversationTest, JoiningAndLeavingAreToldOnce) {
  waits(6);
  EXPECT_THAT(conversation.take_changed(), UnorderedElementsAre(p1, p2));
  EXPECT_THAT(conversation.take_changed(), IsEmpty());
  conversation.end_what_is_over(now + lasts);
  EXPECT_THAT(conversation.take_changed(), UnorderedElementsAre(p1, p2));
}

TEST_F(ConversationTest, WithTheRequesterGoesItsConversation) {
  waits(4);
  (void)conversation.take_changed();
  conversation.forget(p1);
  EXPECT_FALSE(has(p2));
  EXPECT_THAT(conversation.take_changed(), UnorderedElementsAre(p1, p2));
}

TEST_F(ConversationTest, WithAProviderGoesItsPartAlone) {
  waits(4);
  (void)conversation.take_changed();
  conversation.forget(p2);
  EXPECT_TRUE(has(p1));
  EXPECT_THAT(conversation.take_changed(), ElementsAre(p2));
}

}  // namespace
}  // namespace swapd::test
