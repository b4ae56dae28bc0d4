// The notes that the control thread gets, and how often.
#include "engine/event_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;
using actuate::Ineffective;
using actuate::Outcome;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Type = Note::Type;
using What = Outcome::What;

constexpr ThreadId client{10, 1}, server{20, 1}, other{30, 1};
const Resource socket{ResourceKind::socket, {7}};

class EventFeedTest : public testing::Test {
 protected:
  EventFeedTest() {
    clock_.set(Time{100s});
    for (const ThreadId thread : {client, server}) {
      members_.add_process(thread.tid, thread.start_time, 0, "default");
      members_.add_thread({.id = thread, .tgid = thread.tid, .base = {}});
    }
    feed_.want(Notes::decisions);
  }
  std::vector<Type> types() {
    std::vector<Type> out;
    for (const Note& note : feed_.take()) out.push_back(note.type);
    return out;
  }
  void decide(std::vector<ThreadId> requesters) {
    Vector<decide::Donation> donations;
    for (const ThreadId requester : requesters)
      donations.push_back({.requester = requester, .attr = {}, .resource = socket, .path = {server}});
    feed_.on_donations(donations);
  }
  static Outcome outcome(What what, Ineffective reason = Ineffective::none) {
    Outcome out;
    out.what = what;
    out.boost.thread = server;
    out.boost.requester = client;
    out.boost.resource = socket;
    out.reason = reason;
    return out;
  }

  ManualClock clock_;
  model::ManagedSet members_;
  EventFeed feed_{members_, clock_};
};

TEST_F(EventFeedTest, NobodyFollowsAndNothingIsTold) {
  feed_.want(Notes::none);
  feed_.on_event(Enrolled{.time = clock_.now(), .thread = client, .tgid = 10, .uid = 0, .base = {}}, true);
  decide({client});
  feed_.on_outcome(outcome(What::begun));
  EXPECT_THAT(feed_.take(), IsEmpty());
}

TEST_F(EventFeedTest, ManagedThreadsAreTheDecisionsAndWaitsAreNot) {
  feed_.on_event(Enrolled{.time = clock_.now(), .thread = client, .tgid = 10, .uid = 0, .base = {}}, true);
  feed_.on_event(Blocked{.time = clock_.now(), .thread = client, .call = 0, .awaited = {socket}}, false);
  feed_.on_event(Exited{.time = clock_.now(), .thread = client}, true);
  EXPECT_THAT(types(), ElementsAre(Type::enrolled, Type::exited));
}

TEST_F(EventFeedTest, AClientThatWantsAllGetsWhatEachThreadDoes) {
  feed_.want(Notes::all);
  feed_.on_event(Blocked{.time = clock_.now(), .thread = client, .call = 0, .awaited = {socket}}, false);
  feed_.on_event(Woken{.time = clock_.now(), .thread = client, .by = server, .through = socket}, false);
  const auto notes = feed_.take();
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_EQ(notes[0].resource, socket);
  EXPECT_EQ(notes[0].tgid, 10);
  EXPECT_EQ(notes[1].other, server);
}

TEST_F(EventFeedTest, TheWholeProcessIsSaidOnlyOfItsOwnEvents) {
  feed_.on_event(Exited{.time = clock_.now(), .thread = client}, true);
  feed_.on_event(Exited{.time = clock_.now(), .thread = server}, false);
  const auto notes = feed_.take();
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_TRUE(notes[0].process);
  EXPECT_FALSE(notes[1].process);
}

TEST_F(EventFeedTest, EventsOfNoThreadAreNoNotes) {
  feed_.want(Notes::all);
  feed_.on_event(Holders{.time = clock_.now(), .resource = socket, .threads = {server}}, false);
  feed_.on_event(QuantumUsed{.time = clock_.now(), .requester = client}, false);
  EXPECT_THAT(feed_.take(), IsEmpty());
}

TEST_F(EventFeedTest, ACommandsProcessIsToldAsAWhole) {
  feed_.on_managed(client, false, clock_.now());
  feed_.on_managed(client, true, clock_.now());
  const auto notes = feed_.take();
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_EQ(notes[0].type, Type::unenrolled);
  EXPECT_EQ(notes[1].type, Type::enrolled);
  EXPECT_TRUE(notes[0].process && notes[1].process);
}

TEST_F(EventFeedTest, TheFirstInversionOfAPairIsTold) {
  decide({client});
  const auto notes = feed_.take();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_EQ(notes[0].type, Type::inversion_found);
  EXPECT_EQ(notes[0].thread, server);
  EXPECT_EQ(notes[0].other, client);
  EXPECT_EQ(notes[0].tgid, 20);
  EXPECT_EQ(notes[0].other_tgid, 10);
}

TEST_F(EventFeedTest, APairThatIsStillThereIsNoInversionFound) {
  decide({client});
  clock_.advance(10s);
  decide({client});
  EXPECT_THAT(types(), ElementsAre(Type::inversion_found));
}

TEST_F(EventFeedTest, APairThatComesAgainIsToldAfterAPauseOnly) {
  decide({client});
  decide({});
  clock_.advance(500ms);
  decide({client});
  decide({});
  EXPECT_THAT(types(), ElementsAre(Type::inversion_found));
  clock_.advance(600ms);
  decide({client});
  EXPECT_THAT(types(), ElementsAre(Type::inversion_found));
}

TEST_F(EventFeedTest, EachPairIsToldForItself) {
  decide({client, other});
  EXPECT_THAT(types(), ElementsAre(Type::inversion_found, Type::inversion_found));
}

TEST_F(EventFeedTest, ADonationThatReachesNobodyIsNoInversion) {
  feed_.on_donations({{.requester = client, .attr = {}, .resource = socket, .path = {}}});
  EXPECT_THAT(feed_.take(), IsEmpty());
}

TEST_F(EventFeedTest, AQuotaIsToldOncePerProcessAndPause) {
  for (int i = 0; i < 5; ++i) feed_.on_over_quota({40 + i, 1}, 40, 1000, clock_.now());
  feed_.on_over_quota({50, 1}, 50, 1000, clock_.now());
  const auto notes = feed_.take();
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_EQ(notes[0].type, Type::limit_reached);
  EXPECT_EQ(notes[0].limit, "members");
  EXPECT_EQ(notes[1].tgid, 50);
}

TEST_F(EventFeedTest, ABoostsBeginningAndEndAreTold) {
  feed_.on_outcome(outcome(What::begun));
  feed_.on_outcome(outcome(What::changed));
  feed_.on_outcome(outcome(What::rebased));
  feed_.on_outcome(outcome(What::ended));
  EXPECT_THAT(types(), ElementsAre(Type::donation_begun, Type::donation_ended));
}

TEST_F(EventFeedTest, WhatDoesNotHelpIsToldWithItsReason) {
  feed_.on_outcome(outcome(What::ineffective, Ineffective::autogroup));
  feed_.on_outcome(outcome(What::failed));
  const auto notes = feed_.take();
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_EQ(notes[0].type, Type::ineffective);
  EXPECT_EQ(notes[0].reason, Ineffective::autogroup);
  EXPECT_EQ(notes[1].type, Type::ineffective);
}

TEST_F(EventFeedTest, ACeilingThatRestsTenTimesASecondIsToldOnceASecond) {
  for (int i = 0; i < 20; ++i) {
    feed_.on_outcome(outcome(What::ineffective, Ineffective::ceiling));
    clock_.advance(100ms);
  }
  const auto notes = feed_.take();
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_EQ(notes[0].type, Type::limit_reached);
  EXPECT_EQ(notes[0].limit, actuate::name(Ineffective::ceiling));
}

TEST_F(EventFeedTest, CeilingAndQuotaAreToldForThemselves) {
  feed_.on_outcome(outcome(What::ineffective, Ineffective::ceiling));
  feed_.on_outcome(outcome(What::ineffective, Ineffective::quota));
  EXPECT_THAT(types(), ElementsAre(Type::limit_reached, Type::limit_reached));
}

TEST_F(EventFeedTest, TheJournalGetsADonationOnceInTenSecondsWithHowManyItMissed) {
  feed_.want(Notes::none);
  feed_.want_journal(true);
  for (int i = 0; i < 3; ++i) feed_.on_outcome(outcome(What::begun));
  clock_.advance(10s);
  feed_.on_outcome(outcome(What::begun));
  const auto notes = feed_.take();
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_EQ(notes[0].journalled, 0U);
  EXPECT_EQ(notes[1].journalled, 2U);
}

TEST_F(EventFeedTest, TheJournalIsNotToldOfEndsAndCeilings) {
  feed_.want(Notes::none);
  feed_.want_journal(true);
  feed_.on_outcome(outcome(What::ended));
  feed_.on_outcome(outcome(What::ineffective, Ineffective::ceiling));
  EXPECT_THAT(feed_.take(), IsEmpty());
}

TEST_F(EventFeedTest, TheJournalHasRoomForTwentyPairsAtOnce) {
  feed_.want(Notes::none);
  feed_.want_journal(true);
  for (int i = 0; i < 100; ++i) {
    Outcome one = outcome(What::begun);
    one.boost.thread = {1000 + i, 1};
    feed_.on_outcome(one);
  }
  EXPECT_THAT(feed_.take(), SizeIs(20));
}

TEST_F(EventFeedTest, TheDescriptorIsReadableWhileThereAreNotes) {
  pollfd ready{feed_.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  decide({client});
  EXPECT_EQ(::poll(&ready, 1, 0), 1);
  (void)feed_.take();
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
}

TEST_F(EventFeedTest, NotesThatFindNoRoomAreCounted) {
  for (std::size_t i = 0; i < NoteQueue::most + 3; ++i) feed_.on_managed(client, true, clock_.now());
  EXPECT_EQ(feed_.lost(), 3U);
  EXPECT_THAT(feed_.take(), SizeIs(NoteQueue::most));
}

}  // namespace
}  // namespace swapd::daemon
