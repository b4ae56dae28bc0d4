#include "guard/held_listeners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace swapd::daemon {
namespace {

class HeldListenersTest : public testing::Test {
 protected:
  std::array<ListenerSlot, 4> slots_{};
  HeldListeners held_{slots_};
};

TEST_F(HeldListenersTest, AListenerIsFoundByItsDescriptorAndByItsCalls) {
  HeldListener& added = held_.add(7, 2, 100);
  EXPECT_EQ(added.launch, 100);
  EXPECT_EQ(added.slot, &slots_[2]);
  EXPECT_EQ(held_.find(7), &added);
  EXPECT_EQ(held_.fd_of(added), 7);
  DelayedCall call;
  call.slot = 2;
  EXPECT_EQ(held_.of(call), &added);
  call.slot = 1;
  EXPECT_EQ(held_.of(call), nullptr);
  call.slot = 4;  // swapd writes that memory
  EXPECT_EQ(held_.of(call), nullptr);
}

TEST_F(HeldListenersTest, OneThatIsRemovedHasNoCalls) {
  held_.add(7, 2, 100);
  EXPECT_TRUE(held_.remove(7));
  EXPECT_FALSE(held_.remove(7));
  DelayedCall call;
  call.slot = 2;
  EXPECT_EQ(held_.of(call), nullptr);
  EXPECT_TRUE(held_.empty());
}

TEST_F(HeldListenersTest, ADescriptorThatIsUsedAgainIsAnotherListener) {
  held_.add(7, 2, 100).highest = 50;
  EXPECT_TRUE(held_.remove(7));
  const HeldListener& again = held_.add(7, 3, 200);
  EXPECT_EQ(again.highest, 0U);
  EXPECT_THAT(held_.fds(), testing::ElementsAre(7));
}

TEST_F(HeldListenersTest, TheLastKnownIdIsTheHighestOfThree) {
  HeldListener& held = held_.add(7, 0, 100);
  slots_[0].last_id = 10;
  EXPECT_EQ(held.last_known(), 10U);
  slots_[0].open_id = 11;
  EXPECT_EQ(held.last_known(), 11U);
  held.highest = 12;
  EXPECT_EQ(held.last_known(), 12U);
}

TEST_F(HeldListenersTest, SlotsBeyondTheLastAreNone) {
  EXPECT_TRUE(held_.has_slot(3));
  EXPECT_FALSE(held_.has_slot(4));
}

}  // namespace
}  // namespace swapd::daemon
