// The children of a process are as it is, also if it ended before swapd looked.
#include "engine/families.h"

#include <gtest/gtest.h>

namespace swapd::daemon {
namespace {

class FamiliesTest : public testing::Test {
 protected:
  FamiliesTest() {
    members_.add_process(10, 1, 1000, "batch").launch = 10;
    members_.add_thread({.id = {10, 1}, .tgid = 10, .base = {}});
    listeners_.bind(10, nullptr);
  }
  // `child` of `parent` has ended before anything could be read of it.
  void miss(pid_t child, pid_t parent) { families_.add_unseen(child, *families_.find(parent), parent); }

  model::ManagedSet members_{{"batch"}};
  ListenerTable listeners_;
  Families families_{members_, listeners_};
};

TEST_F(FamiliesTest, AManagedProcessIsItsOwn) {
  EXPECT_EQ(families_.find(10), members_.process(10));
  EXPECT_EQ(families_.find(11), nullptr);
}

TEST_F(FamiliesTest, AProcessThatWasNotSeenIsAsItsParentIs) {
  miss(11, 10);
  miss(12, 11);
  const model::ManagedProcess* grandchild = families_.find(12);
  ASSERT_NE(grandchild, nullptr);
  EXPECT_EQ(grandchild->class_name, "batch");
  EXPECT_EQ(grandchild->uid, 1000U);
  EXPECT_EQ(grandchild->launch, 10);
  EXPECT_EQ(grandchild->start_time, 0U);
  EXPECT_TRUE(listeners_.contains(12));
}

TEST_F(FamiliesTest, ItsEndIsTheEnd) {
  miss(11, 10);
  families_.end(11);
  EXPECT_EQ(families_.find(11), nullptr);
  EXPECT_FALSE(listeners_.contains(11));
  families_.end(10);  // which is managed: the tracker has it
  EXPECT_NE(families_.find(10), nullptr);
  EXPECT_TRUE(listeners_.contains(10));
}

TEST_F(FamiliesTest, LostEndsDoNotPileUp) {
  const int all = static_cast<int>(Families::max_unseen);
  for (int pid = 100; pid <= 100 + all; ++pid) miss(pid, 10);
  EXPECT_EQ(families_.find(100), nullptr);
  EXPECT_FALSE(listeners_.contains(100));
  EXPECT_NE(families_.find(100 + all), nullptr);
}

}  // namespace
}  // namespace swapd::daemon
