#include "model/managed_set.h"

#include <gtest/gtest.h>

namespace swapd::model {
namespace {

ManagedThread thread(pid_t tid, pid_t tgid, int nice) {
  ManagedThread out{.id = {tid, 100}, .tgid = tgid, .base = {}};
  out.base.nice = static_cast<std::int8_t>(nice);
  return out;
}

TEST(ManagedSet, the_lowest_rank_is_that_of_the_least_important_managed_thread) {
  ManagedSet members;
  members.add_process(1, 100, 0, "default");
  members.add_process(2, 100, 0, "default");
  members.add_thread(thread(1, 1, 0));
  members.add_thread(thread(2, 2, -10));
  EXPECT_EQ(members.lowest_rank(), 20);
  members.add_thread(thread(1, 1, 5));  // reniced
  EXPECT_EQ(members.lowest_rank(), 15);
  members.remove_thread(1);
  EXPECT_EQ(members.lowest_rank(), 30);
}

TEST(ManagedSet, are_counted_for_their_user) {
  const auto held = [](const ManagedSet& members, std::uint32_t uid) {
    return std::pair(members.held_by(uid).processes, members.held_by(uid).threads);
  };
  ManagedSet members;
  members.add_process(1, 100, 1000, "default");
  members.add_thread(thread(1, 1, 0));
  members.add_thread(thread(2, 1, 0));
  members.add_thread(thread(2, 1, 5));  // the same, reniced
  members.add_process(3, 100, 1000, "default");
  EXPECT_EQ(held(members, 1000), std::pair(1UL, 2UL));
  members.drop_if_empty(3);
  EXPECT_EQ(members.process(3), nullptr);
  members.drop_if_empty(1);
  EXPECT_EQ(held(members, 1000), std::pair(1UL, 2UL));
  EXPECT_TRUE(members.set_uid(1, 1001));
  EXPECT_FALSE(members.set_uid(1, 1001));
  EXPECT_EQ(held(members, 1000), std::pair(0UL, 0UL));
  EXPECT_EQ(held(members, 1001), std::pair(1UL, 2UL));
  EXPECT_EQ(members.users(), 1U);
  members.set_managed(1, false);
  EXPECT_EQ(held(members, 1001), std::pair(0UL, 0UL)) << "released";
  members.set_managed(1, true);
  EXPECT_EQ(held(members, 1001), std::pair(1UL, 2UL));
  members.add_process(1, 100, 1002, "other");  // taken in again
  members.remove_thread(1);
  EXPECT_EQ(held(members, 1002), std::pair(1UL, 1UL));
  members.remove_thread(2);
  EXPECT_EQ(held(members, 1002), std::pair(0UL, 0UL));
}

TEST(ManagedSet, a_process_goes_with_its_last_thread) {
  ManagedSet members;
  members.add_process(7, 100, 0, "default");
  members.add_thread(thread(7, 7, 0));
  members.add_thread(thread(8, 7, 0));
  members.remove_thread(7);
  ASSERT_NE(members.process(7), nullptr);
  members.remove_thread(8);
  EXPECT_EQ(members.process(7), nullptr);
  EXPECT_TRUE(members.empty());
  EXPECT_EQ(members.managed_threads(), 0U);
}

TEST(ManagedSet, a_released_process_counts_for_nothing_until_it_is_managed_again) {
  ManagedSet members;
  members.add_process(7, 100, 0, "default");
  members.add_thread(thread(7, 7, 19));
  members.set_managed(7, false);
  EXPECT_EQ(members.managed_threads(), 0U);
  EXPECT_EQ(members.managed_processes(), 0U);
  EXPECT_TRUE(members.managed_pids().empty());
  EXPECT_NE(members.process(7), nullptr) << "its listener stays";
  members.set_managed(7, true);
  EXPECT_EQ(members.lowest_rank(), 1);
}

TEST(ManagedSet, a_recycled_tid_is_another_thread) {
  ManagedSet members;
  members.add_process(7, 100, 0, "default");
  members.add_thread(thread(7, 7, 0));
  EXPECT_EQ(members.thread(ThreadId{7, 101}), nullptr);
  EXPECT_NE(members.thread(ThreadId{7, 100}), nullptr);
}

TEST(ManagedSet, a_thread_without_its_process_is_not_added) {
  ManagedSet members;
  members.add_thread(thread(7, 7, 0));
  EXPECT_EQ(members.thread(7), nullptr);
  EXPECT_TRUE(members.threads().empty());
}

}  // namespace
}  // namespace swapd::model
