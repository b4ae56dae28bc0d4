// A nice value that is asked for does what renice(1) does.
#include "base/asked_priority.h"

#include <gtest/gtest.h>

namespace swapd {
namespace {

const SchedAttr fifo_5{.policy = SchedPolicy::fifo, .rt_priority = 5};

TEST(AskedPriority, ANiceValueAloneLeavesTheClassAndTheFlagAsTheyAre) {
  for (const SchedPolicy policy : {SchedPolicy::other, SchedPolicy::batch, SchedPolicy::idle}) {
    const SchedAttr own{.policy = policy, .nice = 3, .reset_on_fork = true, .runtime_ns = 100'000};
    SchedAttr then = own;
    then.nice = -11;
    EXPECT_EQ(AskedPriority::only_nice(-11).over(own), then) << name(policy);
  }
  const SchedAttr flagged{.policy = SchedPolicy::rr, .rt_priority = 20, .reset_on_fork = true};
  const SchedAttr deadline{.policy = SchedPolicy::deadline, .runtime_ns = 1, .deadline_ns = 2, .period_ns = 2};
  for (const SchedAttr& own : {flagged, fifo_5, deadline})
    EXPECT_EQ(AskedPriority::only_nice(-11).over(own), own) << "the kernel keeps the nice value for later";
}

TEST(AskedPriority, AClassThatIsAskedForReplacesAll) {
  const SchedAttr batch{.policy = SchedPolicy::batch, .nice = 3, .reset_on_fork = true};
  EXPECT_EQ(AskedPriority(fifo_5).over(batch), fifo_5);
  EXPECT_EQ(AskedPriority(SchedAttr{}).over(fifo_5), SchedAttr{});
}

}  // namespace
}  // namespace swapd
