// The listener of each process; receivers follow their real-time callers; receivers are fakes.
#include "engine/listener_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class FakeReceiver final : public observe::ReceiverHandle {
 public:
  [[nodiscard]] std::uint64_t received() const override { return calls; }
  [[nodiscard]] pid_t last_caller() const override { return last; }
  [[nodiscard]] std::uint64_t lost() const override { return lost_calls; }
  [[nodiscard]] Duration cpu_time() const override { return 3ms; }
  void set_urgent(bool on) override { urgent = on; }
  [[nodiscard]] Status follow(int cpu, int priority) override {
    if (!can_follow) return Error(ESRCH, "follow");
    cpus.push_back(cpu);
    last_priority = priority;
    return Done{};
  }

  std::uint64_t calls = 0, lost_calls = 0;
  pid_t last = 0;
  bool urgent = false, can_follow = true;
  std::vector<int> cpus;  // that it was pinned to, in turn
  int last_priority = 0;
};

class ListenerTableTest : public testing::Test {
 protected:
  void SetUp() override {
    table_.add(one_, 10);
    table_.bind(10, one_.get());
  }
  // A tick in which these threads are real-time; each has made a call since the last one.
  void tick(std::vector<ListenerTable::Caller> realtime, bool calls = true) {
    if (calls) ++one_->calls;
    table_.follow(realtime, 94, [this](pid_t tid) {
      ++looks_;
      const auto found = cpu_of_.find(tid);
      return found == cpu_of_.end() ? std::nullopt : std::optional(found->second);
    });
  }

  std::shared_ptr<FakeReceiver> one_ = std::make_shared<FakeReceiver>(), other_ = std::make_shared<FakeReceiver>();
  ListenerTable table_;
  std::map<pid_t, int> cpu_of_{{10, 2}, {11, 3}};
  int looks_ = 0;
};

TEST_F(ListenerTableTest, AChildIsUnderItsParentsListener) {
  table_.inherit(20, 10);
  EXPECT_TRUE(table_.contains(20));
  table_.inherit(30, 99);
  EXPECT_FALSE(table_.contains(30)) << "its parent is under none";
}

TEST_F(ListenerTableTest, AProcessThatHasEndedIsUnderNone) {
  table_.unbind(10);
  EXPECT_FALSE(table_.contains(10));
}

TEST_F(ListenerTableTest, WithItsReceiverEveryProcessUnderItIsForgotten) {
  table_.add(other_, 40);
  table_.bind(40, other_.get());
  table_.inherit(20, 10);
  table_.remove(one_.get());
  EXPECT_FALSE(table_.contains(10));
  EXPECT_FALSE(table_.contains(20));
  EXPECT_TRUE(table_.contains(40));
  EXPECT_EQ(table_.size(), 1U);
}

TEST_F(ListenerTableTest, AListenerIsFoundByTheLaunchThatMadeIt) {
  EXPECT_EQ(table_.of_launch(10), one_.get());
  EXPECT_EQ(table_.of_launch(11), nullptr);
  table_.add(other_, 0);
  EXPECT_EQ(table_.of_launch(0), nullptr) << "no launch has made it";
}

TEST_F(ListenerTableTest, IoCallsAreTrappedForAllUnderSuchAListener) {
  table_.inherit(20, 10);
  EXPECT_FALSE(table_.has_io(10));
  EXPECT_FALSE(table_.any_io());
  table_.traps_io(one_.get());
  EXPECT_TRUE(table_.has_io(10));
  EXPECT_TRUE(table_.has_io(20));
  EXPECT_FALSE(table_.has_io(99));
  EXPECT_TRUE(table_.any_io());
}

TEST_F(ListenerTableTest, UrgencyIsToldToAllAndToThoseThatComeLater) {
  EXPECT_TRUE(table_.set_urgent(true));
  EXPECT_FALSE(table_.set_urgent(true)) << "no change";
  table_.add(other_, 40);
  EXPECT_TRUE(one_->urgent);
  EXPECT_TRUE(other_->urgent);
  EXPECT_TRUE(table_.set_urgent(false));
  EXPECT_FALSE(one_->urgent);
}

TEST_F(ListenerTableTest, TotalsHaveThoseThatHaveEnded) {
  table_.add(other_, 40);
  one_->calls = 100, one_->lost_calls = 1;
  other_->calls = 10, other_->lost_calls = 2;
  EXPECT_EQ(table_.remove(one_.get()), 1U);
  EXPECT_EQ(table_.totals().received, 110U);
  EXPECT_EQ(table_.totals().lost, 3U);
  EXPECT_EQ(table_.totals().cpu, 3ms) << "of the one that runs";
}

TEST_F(ListenerTableTest, WithoutARealTimeCallerAReceiverStaysOrdinary) {
  tick({});
  EXPECT_THAT(one_->cpus, IsEmpty());
}

TEST_F(ListenerTableTest, AReceiverFollowsItsRealTimeCaller) {
  tick({{10, 10}});
  EXPECT_THAT(one_->cpus, ElementsAre(2));
  EXPECT_EQ(one_->last_priority, 94);
}

TEST_F(ListenerTableTest, AThreadUnderAnotherListenerIsNotFollowed) {
  table_.add(other_, 40);
  tick({{10, 10}});
  EXPECT_THAT(other_->cpus, IsEmpty());
}

TEST_F(ListenerTableTest, OfSeveralCallersTheLastOneIsFollowed) {
  one_->last = 11;
  tick({{10, 10}, {11, 10}});
  EXPECT_THAT(one_->cpus, ElementsAre(3));
}

TEST_F(ListenerTableTest, WhenTheCallerIsRealTimeNoMoreTheReceiverIsOrdinaryAgain) {
  tick({{10, 10}});
  tick({});
  EXPECT_THAT(one_->cpus, ElementsAre(2, -1));
}

TEST_F(ListenerTableTest, ACallerThatMovesIsFollowed) {
  tick({{10, 10}});
  cpu_of_[10] = 5;
  tick({{10, 10}});
  EXPECT_THAT(one_->cpus, ElementsAre(2, 5));
}

TEST_F(ListenerTableTest, ACallerThatMakesNoCallsIsNotLookedFor) {
  tick({{10, 10}});
  const int before = looks_;
  for (int i = 0; i < 5; ++i) tick({{10, 10}}, false);
  EXPECT_EQ(looks_, before);
}

TEST_F(ListenerTableTest, ACallerThatStaysIsLookedForLessOften) {
  for (int i = 0; i < 30; ++i) tick({{10, 10}});
  EXPECT_LE(looks_, 12) << "every third tick, after the first few";
  EXPECT_GE(looks_, 9);
}

TEST_F(ListenerTableTest, AFollowThatFailsIsTriedAgain) {
  one_->can_follow = false;
  tick({{10, 10}});
  one_->can_follow = true;
  tick({{10, 10}});
  EXPECT_THAT(one_->cpus, ElementsAre(2));
}

TEST_F(ListenerTableTest, ACallerThatIsGoneChangesNothing) {
  tick({{10, 10}});
  cpu_of_.clear();
  tick({{11, 10}});
  EXPECT_THAT(one_->cpus, ElementsAre(2));
}

}  // namespace
}  // namespace swapd::daemon
