// A parallel job whose rivals are in other sessions, among which the kernel shares the CPUs first, on a machine that is
// made up.
#include "decide/coscheduling/coscheduling_decider.h"

#include <gmock/gmock.h>

#include "unit/decide/parallel_machine.h"

namespace swapd::test {
namespace {

using State = decide::JobFinder::State;
using namespace std::chrono_literals;

class OtherSessions : public testing::Test {
 protected:
  static constexpr int terminal = 1, elsewhere = 2;
  // Two threads that spin for each other, each with a hog of another session on its CPU.
  void job_and_hogs(int hogs_a_cpu = 1) {
    run.spinner(p1, 0);
    run.spinner(p2, 1);
    for (const ThreadId thread : {p1, p2}) run.machine.of(thread).session = terminal;
    for (int i = 0; i < hogs_a_cpu; ++i)
      for (const int cpu : {0, 1}) hogs.push_back(run.hog(cpu, elsewhere));
  }
  [[nodiscard]] bool lowers_group(ThreadId thread) {
    const decide::Grant* grant = run.turns().grant(thread);
    return grant != nullptr && grant->run.lowers_group;
  }
  // 0…1: of a CPU, that the thread has for so long.
  double share_for(Duration time, ThreadId thread) {
    const Duration before = run.used(thread);
    run.run(time);
    return std::chrono::duration<double>(run.used(thread) - before) / std::chrono::duration<double>(time);
  }
  ParallelRun run;
  std::vector<ThreadId> hogs;
};

TEST_F(OtherSessions, JobsSessionIsLoweredInItsSlotsAndBetweenThem) {
  job_and_hogs();
  run.run(2s);
  ASSERT_EQ(run.state(), State::wanted);
  int slots = 0, gaps = 0;
  run.after_turn = [&] {
    ASSERT_TRUE(lowers_group(p1));
    ASSERT_TRUE(lowers_group(p2));
    ++(run.in_slot(p1) ? slots : gaps);
  };
  run.run(1s);
  EXPECT_GT(slots, 20);
  EXPECT_GT(gaps, 20);
}

TEST_F(OtherSessions, JobHasItsSessionsShareHoweverManyHogsThereAre) {
  job_and_hogs(3);
  run.run(3s);
  EXPECT_NEAR(share_for(20s, p1), 0.5, 0.02);
}

TEST_F(OtherSessions, ShareFollowsTheRivalsThatComeAndGo) {
  job_and_hogs();
  run.run(3s);
  EXPECT_NEAR(share_for(10s, p1), 0.5, 0.02);
  for (const int cpu : {0, 1}) run.hog(cpu, 3);
  run.run(2s);
  EXPECT_NEAR(share_for(10s, p1), 1.0 / 3, 0.02);
  for (const ThreadId hog : hogs) run.machine.remove(hog);
  run.run(2s);
  EXPECT_NEAR(share_for(10s, p1), 0.5, 0.02);
}

TEST_F(OtherSessions, NothingIsLoweredOnceTheRivalsAreGone) {
  job_and_hogs();
  run.run(3s);
  ASSERT_TRUE(lowers_group(p1));
  for (const ThreadId hog : hogs) run.machine.remove(hog);
  run.run(2s);
  EXPECT_FALSE(run.touched(p1));
  EXPECT_EQ(run.state(), State::alone);
}

// Its own session's programs would wait for those of other sessions, on whichever CPU they are.
class AnotherProgramOfItsSession : public OtherSessions, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(OnCpu, AnotherProgramOfItsSession, testing::Values(0, 2));

TEST_P(AnotherProgramOfItsSession, HasTheJobLeftAlone) {
  job_and_hogs();
  run.hog(GetParam(), terminal);
  run.run(5s);
  EXPECT_EQ(run.state(), State::round_robin) << "no slots, but short turns";
  EXPECT_FALSE(run.touched(p1));
}

TEST_F(OtherSessions, JobIsLeftAloneWhereItsSessionCannotBeLowered) {
  run.machine.sessions_can_be_lowered = false;
  job_and_hogs();
  run.run(3s);
  EXPECT_EQ(run.state(), State::round_robin) << "no slots, but short turns";
  bool touched = false;
  run.after_turn = [&] { touched = touched || run.touched(p1); };
  run.run(10s);
  EXPECT_FALSE(touched) << "it is not tried again";
  EXPECT_NEAR(share_for(5s, p1), 0.5, 0.01);
}

TEST_F(OtherSessions, RivalsOfTheSameSessionLowerNothing) {
  run.spinner(p1, 0);
  run.spinner(p2, 1);
  for (const int cpu : {0, 1}) run.hog(cpu);
  run.run(3s);
  ASSERT_EQ(run.state(), State::wanted);
  EXPECT_FALSE(lowers_group(p1));
}

TEST_F(OtherSessions, TwoJobsOfTwoSessionsHaveHalfOfTheCpusEach) {
  run.spinner(p1, 0, 1);
  run.spinner(p2, 1, 1);
  run.spinner(p3, 0, 3);
  run.spinner(p4, 1, 3);
  for (const ThreadId thread : {p1, p2}) run.machine.of(thread).session = terminal;
  for (const ThreadId thread : {p3, p4}) run.machine.of(thread).session = elsewhere;
  run.run(5s);
  EXPECT_EQ(run.state(1), State::wanted);
  EXPECT_EQ(run.state(3), State::wanted);
  const Duration before = run.used(p3);
  EXPECT_NEAR(share_for(20s, p1), 0.5, 0.02);
  EXPECT_NEAR(std::chrono::duration<double>(run.used(p3) - before).count() / 20, 0.5, 0.02);
}

TEST_F(OtherSessions, TwoJobsAndHogsHaveAThirdEach) {
  job_and_hogs(2);
  run.spinner(p3, 0, 3);
  run.spinner(p4, 1, 3);
  for (const ThreadId thread : {p3, p4}) run.machine.of(thread).session = 3;
  run.run(5s);
  const Duration before = run.used(p3);
  EXPECT_NEAR(share_for(20s, p1), 1.0 / 3, 0.02);
  EXPECT_NEAR(std::chrono::duration<double>(run.used(p3) - before).count() / 20, 1.0 / 3, 0.02);
}

}  // namespace
}  // namespace swapd::test
