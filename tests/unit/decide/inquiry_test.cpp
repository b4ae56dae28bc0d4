// The resources that the worker is asked about, and when.
#include "decide/donation/inquiry.h"

#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::Attention;
using decide::Inquiry;
using decide::Look;
using decide::Plan;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const Resource lock{ResourceKind::flock, {1, 2, 1}};

class InquiryTest : public testing::Test {
 protected:
  InquiryTest() {
    world.enroll(1, 4);
    for (const ThreadId id : {p1, p2, p3}) attention.watch_requester(id, id.tid, world.now);
  }
  std::vector<Resource> asked(Inquiry::Why why = Inquiry::Why::begins) {
    clear(plan);
    inquiry.ask(world.model, p1, world.now, why, attention, plan);
    std::vector<Resource> out;
    for (const decide::Question& one : plan.questions)
      out.insert(out.end(), one.resources.begin(), one.resources.end());
    return out;
  }
  void pass(Duration time) { world.now += time; }
  World world;
  Attention attention;
  Inquiry inquiry{milliseconds(250)};
  Plan plan;
};

TEST_F(InquiryTest, AResourceWithoutAProviderIsAskedAboutAtOnce) {
  world.blocks(p1, {r1});
  EXPECT_THAT(asked(), ElementsAre(r1));
}

TEST_F(InquiryTest, AResourceWithAProviderIsNot) {
  world.provides(p2, r1);
  world.blocks(p1, {r1});
  EXPECT_THAT(asked(), IsEmpty());
}

TEST_F(InquiryTest, ALockIsAskedAboutAtEachWaitThoughItsHolderIsKnown) {
  world.provides(p2, lock);
  world.blocks(p1, {lock});
  EXPECT_THAT(asked(), ElementsAre(lock));
}

TEST_F(InquiryTest, NotTwiceForOneWait) {
  world.blocks(p1, {r1});
  EXPECT_THAT(asked(), ElementsAre(r1));
  EXPECT_THAT(asked(), IsEmpty());
}

TEST_F(InquiryTest, SignalsOfTheRequesterItselfAreNotAskedAbout) {
  world.blocks(p1, {{ResourceKind::signal, {1001, 1}}});
  EXPECT_THAT(asked(), IsEmpty());
}

// The server of a client is a requester itself. Its turn must not use up the client's.
TEST_F(InquiryTest, SignalsOfAProviderAreAskedAboutThoughItsOwnTurnHasJustBeen) {
  const Resource signal{ResourceKind::signal, {1002, 1}};
  world.provides(p2, r1);
  world.blocks(p2, {signal});
  world.blocks(p1, {r1});
  pass(milliseconds(300));
  clear(plan);
  inquiry.ask(world.model, p2, world.now, Inquiry::Why::lasts, attention, plan);
  EXPECT_THAT(plan.questions, IsEmpty());
  EXPECT_THAT(asked(Inquiry::Why::lasts), testing::Contains(signal));
}

TEST_F(InquiryTest, TheResourcesOfTheWholeWaitTreeAreAskedAbout) {
  world.provides(p2, r1);
  world.blocks(p2, {r2});
  world.blocks(p1, {r1});
  EXPECT_THAT(asked(), ElementsAre(r2));
}

TEST_F(InquiryTest, ManyWaitsThatBeginForOneThreadAskAboutItOnce) {
  world.provides(p3, r1);
  world.blocks(p3, {r2});
  world.blocks(p1, {r1});
  world.blocks(p2, {r1, r3});
  inquiry.ask_at_begin(world.model, std::array{p1, p2}, world.now, plan);
  ASSERT_THAT(plan.questions, SizeIs(2));
  EXPECT_EQ(plan.questions[0].waiter, p3);
  EXPECT_THAT(plan.questions[0].resources, ElementsAre(r2));
  EXPECT_EQ(plan.questions[1].waiter, p2);
  EXPECT_THAT(plan.questions[1].resources, ElementsAre(r3));
}

TEST_F(InquiryTest, ASignalIsAskedAboutForThoseWhoWaitForItsThreadWhateverElseBegins) {
  const Resource signal = signal_to(p1);
  world.provides(p1, r1);
  world.provides(p3, signal);
  world.blocks(p1, {signal, r2});
  world.blocks(p3, {r1});
  world.blocks(p2, {r1});
  world.exits(p3);
  inquiry.ask_at_begin(world.model, std::array{p1, p2}, world.now, plan);
  std::vector<Resource> all;
  for (const decide::Question& one : plan.questions) all.insert(all.end(), one.resources.begin(), one.resources.end());
  EXPECT_THAT(all, ElementsAre(r2, signal));
}

TEST_F(InquiryTest, AWaitThatLastsIsAskedAboutAgainWhenItsPauseIsOver) {
  world.blocks(p1, {lock});
  (void)asked();
  pass(milliseconds(249));
  EXPECT_THAT(asked(Inquiry::Why::lasts), IsEmpty());
  pass(milliseconds(2));
  EXPECT_THAT(asked(Inquiry::Why::lasts), ElementsAre(lock));
  ASSERT_THAT(plan.looks, SizeIs(1));
  EXPECT_EQ(plan.looks[0].at, Look::At::awaited) << "what it awaits may have changed";
  EXPECT_TRUE(plan.questions[0].again);
}

TEST_F(InquiryTest, TheLongerAWaitTheLessOften) {
  world.blocks(p1, {r1});
  (void)asked();
  pass(std::chrono::seconds(4));
  EXPECT_THAT(asked(Inquiry::Why::lasts), ElementsAre(r1));
  pass(milliseconds(900));
  EXPECT_THAT(asked(Inquiry::Why::lasts), IsEmpty()) << "a quarter of its age";
  pass(milliseconds(500));
  EXPECT_THAT(asked(Inquiry::Why::lasts), ElementsAre(r1));
}

TEST_F(InquiryTest, WithABusyWorkerOnlyWhatIsFourTimesOverdue) {
  world.blocks(p1, {lock});
  (void)asked();
  pass(milliseconds(900));
  EXPECT_THAT(asked(Inquiry::Why::overdue), IsEmpty());
  pass(milliseconds(200));
  EXPECT_THAT(asked(Inquiry::Why::overdue), ElementsAre(lock));
}

TEST_F(InquiryTest, WhenTheOnlyProviderHasGoneItsWaitersAreAskedForAtOnce) {
  world.blocks(p1, {r1});
  (void)asked();
  world.provides(p2, r1);
  inquiry.provider_left(world.model, p2);
  world.exits(p2);
  EXPECT_THAT(asked(), ElementsAre(r1));
}

TEST_F(InquiryTest, AProviderThatHasPassedItsWorkOnIsAskedAfterAFewTimesAPeriod) {
  world.provides(p2, r1);
  world.blocks(p1, {r1});
  const auto again = [&] {
    clear(plan);
    inquiry.ask_for_another(world.model, p1, world.now, attention, plan);
    return plan.questions.size();
  };
  EXPECT_EQ(again(), 1U);
  EXPECT_EQ(again(), 0U);
  pass(milliseconds(50));
  EXPECT_EQ(again(), 1U);
}

}  // namespace
}  // namespace swapd::test
