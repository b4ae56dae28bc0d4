// A thread that waits on its CPU for messages: when it has that CPU, on a machine that is made up.
#include <gtest/gtest.h>

#include "unit/decide/parallel_machine.h"

namespace swapd::test {
namespace {

using State = decide::JobFinder::State;
using namespace std::chrono_literals;

// A process whose mates are on other machines: it polls for their messages beside a busy loop.
class CalledByMessages : public testing::Test {
 protected:
  CalledByMessages() {
    run.spinner(p1, 0, 1, 0.8);
    (void)run.hog(0);
  }
  void pass(Duration time, Duration between_messages) {
    for (const Time end = run.now() + time; run.now() < end;) {
      run.run(between_messages);
      run.message(p1);
    }
  }
  // The part of its CPU that it has while that passes.
  double share_in(Duration time, Duration between_messages) {
    const Time begun = run.now();
    const Duration before = run.used(p1);
    pass(time, between_messages);
    return std::chrono::duration<double>(run.used(p1) - before) / std::chrono::duration<double>(run.now() - begun);
  }
  ParallelRun run;
};

TEST_F(CalledByMessages, IsLeftAloneWhileNoneComes) {
  run.run(1s);
  EXPECT_EQ(run.state(), State::alone);
  EXPECT_FALSE(run.touched(p1));
}

TEST_F(CalledByMessages, RunsWhenAMessageComesAndHasItsFairShare) {
  pass(1s, 1ms);
  EXPECT_EQ(run.state(), State::wanted);
  ASSERT_TRUE(run.run_until([&] { return run.between_slots(p1); }));
  EXPECT_NEAR(share_in(5s, 1ms), 0.5, 0.02);
}

TEST_F(CalledByMessages, HasItsFairShareAlsoWhereMessagesAreRare) {
  pass(1s, 1ms);
  EXPECT_NEAR(share_in(5s, 300ms), 0.5, 0.02);
  EXPECT_EQ(run.state(), State::wanted);
}

TEST_F(CalledByMessages, HasItsOwnClassAgainOnceNoMessageComes) {
  pass(1s, 1ms);
  run.run(3s);
  EXPECT_EQ(run.state(), State::alone);
  EXPECT_FALSE(run.touched(p1));
}

TEST_F(CalledByMessages, ThreadThatComputesIsNotListenedFor) {
  run.machine.of(p1).waits = 0.1;
  pass(1s, 1ms);
  EXPECT_TRUE(run.turns().panel->standing(ParallelRun::coscheduling).called.empty());
  EXPECT_FALSE(run.touched(p1));
}

}  // namespace
}  // namespace swapd::test
