// A coscheduling decider that has lost its state and got it back, as a replay has it from a recording's snapshot.
#include <gmock/gmock.h>

#include "decide/coscheduling/coscheduling_decider.h"
#include "unit/decide/parallel_machine.h"

namespace swapd::test {
namespace {

using testing::SizeIs;
using namespace std::chrono_literals;

struct Plans {
  std::vector<std::vector<decide::Grant>> grants;
  std::vector<std::optional<Time>> next;
  bool operator==(const Plans&) const = default;
};

Plans plans_of(ParallelRun& run, Duration time) {
  Plans plans;
  run.after_turn = [&] {
    const auto grants = run.turns().panel->grants();
    plans.grants.emplace_back(grants.begin(), grants.end());
    plans.next.push_back(run.turns().panel->next());
  };
  run.run(time);
  run.after_turn = nullptr;
  return plans;
}

// A run that has lost its deciders' state in the middle, and got it back.
TEST(CoschedulingState, RestoredInMidRunItPlansAsIfNothingHadHappened) {
  const auto begun = [](ParallelRun& run) {
    run.spinner(p1, 0);
    run.spinner(p2, 1);
    for (const int cpu : {0, 1}) run.hog(cpu);
    run.run(1s);
    EXPECT_TRUE(run.run_until([&] { return run.in_slot(p1); }));
  };
  ParallelRun live, other;
  begun(live);
  begun(other);
  other.lose_state();
  ASSERT_TRUE(other.turns().panel->restore(live.turns().panel->save()));
  for (ParallelRun* run : {&live, &other}) run->turns().turn();  // it says when it wants the next one
  const Plans expected = plans_of(live, 2s);
  EXPECT_GT(expected.grants.size(), 100U);
  EXPECT_EQ(plans_of(other, 2s), expected);
}

TEST(CoschedulingState, AWindowThatIsNotWeighedYetComesWithIt) {
  ParallelRun run;
  run.spinner(p1, 0);
  run.spinner(p2, 1);
  run.machine.pass(ParallelRun::window);
  for (const auto& seen : run.machine.end_window(run.now(), ParallelRun::window)) run.turns().panel->on(seen);
  const auto saved = run.turns().panel->save();
  run.lose_state();
  ASSERT_TRUE(run.turns().panel->restore(saved));
  EXPECT_THAT(run.decider->finder().jobs(), SizeIs(0));
  run.turns().turn();
  EXPECT_THAT(run.decider->finder().jobs(), SizeIs(1));
}

TEST(CoschedulingState, DemandsInForceComeBackWithIt) {
  ParallelRun live;
  live.spinner(p1, 0);
  live.spinner(p2, 1);
  for (const int cpu : {0, 1}) live.hog(cpu);
  ASSERT_TRUE(live.run_until([&] { return live.in_slot(p1); }));
  const auto grants = live.turns().panel->grants();
  const std::vector<decide::Grant> before(grants.begin(), grants.end());
  const auto saved = live.turns().panel->save();
  live.lose_state();
  ASSERT_TRUE(live.turns().panel->restore(saved));
  live.turns().turn();
  EXPECT_THAT(live.turns().panel->grants(), testing::ElementsAreArray(before));
}

}  // namespace
}  // namespace swapd::test
