#include "members.h"

#include <gtest/gtest.h>

namespace swapd::daemon {
namespace {

MemberThread thread(pid_t tid, pid_t tgid, int nice) {
  MemberThread out{.id = {tid, 100}, .tgid = tgid, .base = {}};
  out.base.nice = static_cast<std::int8_t>(nice);
  return out;
}

TEST(Members, the_lowest_rank_is_that_of_the_least_important_managed_thread) {
  Members members;
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

TEST(Members, a_process_goes_with_its_last_thread) {
  Members members;
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

TEST(Members, a_released_process_counts_for_nothing_until_it_is_managed_again) {
  Members members;
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

TEST(Members, a_recycled_tid_is_another_thread) {
  Members members;
  members.add_process(7, 100, 0, "default");
  members.add_thread(thread(7, 7, 0));
  EXPECT_EQ(members.thread(ThreadId{7, 101}), nullptr);
  EXPECT_NE(members.thread(ThreadId{7, 100}), nullptr);
}

}  // namespace
}  // namespace swapd::daemon
