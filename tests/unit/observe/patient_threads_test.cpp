// Threads that wait often: the silent waits that are told, and how often they are looked for.
#include "observe/bpf/patient_threads.h"

#include <gmock/gmock.h>

#include <map>

namespace swapd::test {
namespace {

using observe::PatientThreads;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr pid_t client = 10, server = 20, store = 30;

class PatientThreadsTest : public testing::Test {
 protected:
  void waits(pid_t tid, pid_t by = 0) {
    ++slots[tid].waits;
    slots[tid].silent = true;
    slots[tid].starved = false;
    if (by != 0) wakers[tid] = by;
  }
  void lacks_cpu(pid_t tid) { slots[tid] = {.waits = slots[tid].waits, .starved = true}; }
  void runs(pid_t tid) { slots[tid] = {.waits = slots[tid].waits}; }
  std::vector<pid_t> look() {
    now = std::max(now, threads.due().value_or(now));
    return threads.look(now).told;
  }
  Duration to_next() const { return *threads.due() - now; }

  std::map<pid_t, sys::SlotGlance> slots;
  std::map<pid_t, pid_t> wakers;
  int least = 120;  // a hog has a CPU
  int asked = 0;    // … so often
  Time now{milliseconds(1000)};
  PatientThreads threads{{.glance = [this](pid_t tid) -> std::optional<sys::SlotGlance> {
                            const auto found = slots.find(tid);
                            return found == slots.end() ? std::nullopt : std::optional(found->second);
                          },
                          .woken_by = [this](pid_t tid) { return wakers[tid]; },
                          .least_running =
                              [this] {
                                ++asked;
                                return least;
                              }}};
};

TEST_F(PatientThreadsTest, AWaitForAThreadThatLacksACpuIsToldWhenASecondLookSeesIt) {
  threads.add(client, milliseconds(1), now);
  waits(client, server);
  lacks_cpu(server);
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(look(), ElementsAre(client));
}

// A client of several servers waits for any of them.
TEST_F(PatientThreadsTest, EachThreadThatHasEndedItsWaitsLatelyMayEndThisOne) {
  threads.add(client, milliseconds(1), now);
  waits(client, server);
  runs(server);
  EXPECT_THAT(look(), IsEmpty());
  waits(client, store);
  runs(store);
  EXPECT_THAT(look(), IsEmpty());
  lacks_cpu(server);
  EXPECT_THAT(look(), ElementsAre(client));
}

TEST_F(PatientThreadsTest, OneThatEndedItsWaitsLongAgoIsForgotten) {
  threads.add(client, milliseconds(1), now);
  lacks_cpu(server);
  least = 0;
  for (pid_t other = server; other <= server + static_cast<pid_t>(PatientThreads::max_wakers); ++other) {
    waits(client, other);
    (void)look();
  }
  least = 120;
  for (int i = 0; i < 2; ++i) {
    waits(client, store);
    EXPECT_THAT(look(), IsEmpty());
  }
}

// Waits that each last less than from one look to the next cost as much where there are many.
TEST_F(PatientThreadsTest, AnInversionInTwoLooksIsToldThoughTheWaitIsAnother) {
  threads.add(client, milliseconds(1), now);
  lacks_cpu(server);
  waits(client, server);
  EXPECT_THAT(look(), IsEmpty());
  waits(client, server);
  EXPECT_THAT(look(), ElementsAre(client));
}

TEST_F(PatientThreadsTest, WhereNothingLessImportantRunsItIsNoInversion) {
  threads.add(client, milliseconds(1), now);
  waits(client, server);
  slots[client].prio = 110;
  lacks_cpu(server);
  least = 110;
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_FALSE(threads.contended(now));
  least = 111;
  EXPECT_THAT(look(), ElementsAre(client));
  EXPECT_TRUE(threads.contended(now));
  EXPECT_FALSE(threads.contended(now + PatientThreads::stays_contended));
}

TEST_F(PatientThreadsTest, AnotherWaitIsNotTheOneThatWasSeen) {
  threads.add(client, milliseconds(1), now);
  runs(server);
  for (int i = 0; i < 100; ++i) {
    waits(client, server);
    EXPECT_THAT(look(), IsEmpty());
  }
}

TEST_F(PatientThreadsTest, AWaitForAThreadThatRunsIsToldWhenItOutlastsThePatience) {
  threads.add(client, milliseconds(30), now);
  waits(client, server);
  runs(server);
  const Time begun = now;
  while (look().empty()) ASSERT_LT(now - begun, milliseconds(100));
  EXPECT_GE(now - begun, milliseconds(30));
}

TEST_F(PatientThreadsTest, AShortPatienceIsTenMillisecondsForThat) {
  threads.add(client, milliseconds(1), now);
  waits(client, server);
  runs(server);
  const Time begun = now;
  while (look().empty()) ASSERT_LT(now - begun, milliseconds(100));
  EXPECT_GE(now - begun, milliseconds(10));
}

TEST_F(PatientThreadsTest, AWaitIsToldOnce) {
  threads.add(client, milliseconds(1), now);
  waits(client, server);
  lacks_cpu(server);
  (void)look();
  ASSERT_THAT(look(), ElementsAre(client));
  slots[client].silent = false;  // it is told of now
  for (int i = 0; i < 10; ++i) EXPECT_THAT(look(), IsEmpty());
}

TEST_F(PatientThreadsTest, TheInversionOfAProviderIsToldWithTheWaitsForThatProvider) {
  for (const pid_t tid : {client, server}) threads.add(tid, milliseconds(1), now);
  waits(client, server);
  waits(server, store);
  lacks_cpu(store);
  (void)look();
  EXPECT_THAT(look(), UnorderedElementsAre(server, client));
}

TEST_F(PatientThreadsTest, InOneLookABoundedNumberIsToldAndAllHaveTheirTurn) {
  constexpr pid_t count = 100;
  lacks_cpu(server);
  for (pid_t tid = 100; tid < 100 + count; ++tid) {
    threads.add(tid, milliseconds(1), now);
    waits(tid, server);
  }
  std::map<pid_t, int> told;
  for (int i = 0; i < 10; ++i) {
    const auto found = look();
    EXPECT_LE(found.size(), PatientThreads::max_told);
    for (const pid_t tid : found) {
      ++told[tid];
      slots[tid].silent = false;
    }
  }
  EXPECT_THAT(told, SizeIs(count));
}

TEST_F(PatientThreadsTest, LooksBecomeRarerAsLongAsTheyFindNoInversion) {
  threads.add(client, milliseconds(1), now);
  runs(client);
  for (int i = 0; i < 5; ++i) (void)look();
  EXPECT_EQ(to_next(), PatientThreads::max_interval);
  waits(client, server);
  lacks_cpu(server);
  (void)look();
  (void)look();
  EXPECT_EQ(to_next(), PatientThreads::min_interval);
}

// The kernel's program tells such an inversion, so no look need find it; the end of the rest after it needs one.
TEST_F(PatientThreadsTest, AnInversionThatWasToldOtherwiseBringsALookWhenItsRestIsOver) {
  threads.add(client, milliseconds(1), now);
  runs(client);
  for (int i = 0; i < 5; ++i) (void)look();
  threads.told_of_inversion(client, now);
  EXPECT_EQ(to_next(), PatientThreads::rest_patiences * milliseconds(1));
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_EQ(to_next(), PatientThreads::max_interval);
}

TEST_F(PatientThreadsTest, WhoHasTheCpusIsAskedOnceInALookAndSeldomWhereItIsKnown) {
  for (const pid_t tid : {client, store}) {
    threads.add(tid, milliseconds(1), now);
    runs(tid);
  }
  (void)look();
  EXPECT_EQ(asked, 1);
  const Time begun = now;
  while (now - begun < milliseconds(1000)) (void)look();
  EXPECT_LE(asked, 1 + 1000 / 50);
  EXPECT_TRUE(threads.contended(now));
}

TEST_F(PatientThreadsTest, AfterAnInversionAThreadRestsFromTheNext) {
  threads.add(client, milliseconds(10), now);
  threads.add(store, milliseconds(1), now);  // looks come as often as this one wants
  runs(store);
  threads.told_of_inversion(client, now);
  const Time told = now;
  for (bool again = false; !again;) {
    for (int i = 0; i < 2; ++i) {
      waits(client, server);  // another one
      lacks_cpu(server);
      again = !look().empty();
    }
    ASSERT_LT(now - told, milliseconds(100));
  }
  EXPECT_GE(now - told, PatientThreads::rest_patiences * milliseconds(10));
}

TEST_F(PatientThreadsTest, TheEndOfItsRestIsSaid) {
  threads.add(client, milliseconds(1), now);
  threads.told_of_inversion(client, now);
  runs(client);
  now += milliseconds(3);
  EXPECT_THAT(threads.look(now).rested, IsEmpty());
  now += milliseconds(2);
  EXPECT_THAT(threads.look(now).rested, ElementsAre(client));
  now += milliseconds(2);
  EXPECT_THAT(threads.look(now).rested, IsEmpty());
}

TEST_F(PatientThreadsTest, ThousandsOfThreadsAreLookedAtAHundredthOfTheTime) {
  for (pid_t tid = 100; tid < 5100; ++tid) {
    threads.add(tid, milliseconds(1), now);
    runs(tid);
  }
  (void)look();
  EXPECT_EQ(to_next(), 5000 * PatientThreads::a_look);
}

TEST_F(PatientThreadsTest, OfOneThatIsGoneNothingIsTold) {
  threads.add(client, milliseconds(1), now);
  EXPECT_THAT(look(), IsEmpty());
  threads.remove(client);
  EXPECT_FALSE(threads.due());
}

}  // namespace
}  // namespace swapd::test
