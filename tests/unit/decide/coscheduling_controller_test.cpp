// Automatic fairness: E and C follow the share that a job had.
#include "decide/coscheduling/controller.h"

#include <gtest/gtest.h>

#include <cmath>

namespace swapd::decide::coscheduling {
namespace {

using namespace std::chrono_literals;

constexpr RunQueue queue{.slice = 4ms, .runnable = 2};

// A window of a second for one of two, some of whose calls were granted and some refused.
FairnessWindow window(Duration used) {
  return {.used = used, .elapsed = 1s, .share = 0.5, .queue = queue, .granted = 10, .refused = 10};
}

TEST(FairnessWindow, IsTheShareAsAPartOfWhatIsDue) {  // [DCS97 (5.1)]: N Tc / Te
  EXPECT_DOUBLE_EQ(*window(500ms).fairness(), 1);
  EXPECT_DOUBLE_EQ(*window(600ms).fairness(), 1.2);
  FairnessWindow weighted = window(300ms);
  weighted.share = 0.25;
  EXPECT_DOUBLE_EQ(*weighted.fairness(), 1.2);
  EXPECT_FALSE(FairnessWindow{}.fairness());
}

TEST(FairnessController, CallsMoreOftenIfTheJobHasTooLittle) {
  FairnessController controller;
  controller.update(window(400ms));
  EXPECT_DOUBLE_EQ(controller.terms().exponent, 4 * 0.2);
  EXPECT_NEAR(static_cast<double>(controller.terms().constant.count()), 400e3, 1);  // 0.25 x 0.2 of 8 ms
  EXPECT_DOUBLE_EQ(*controller.fairness(), 0.8);
}

TEST(FairnessController, CallsLessOftenIfTheJobHasTooMuch) {
  FairnessController controller;
  controller.update(window(600ms));
  EXPECT_LT(controller.terms().exponent, 0);
  EXPECT_LT(controller.terms().constant, 0ms);
}

TEST(FairnessController, LeavesAloneWhatIsRightWithinTheDeadBand) {
  FairnessController controller({}, {.exponent = 1.5, .constant = 1ms});
  controller.update(window(509ms));
  controller.update(window(491ms));
  EXPECT_DOUBLE_EQ(controller.terms().exponent, 1.5);
  EXPECT_EQ(controller.terms().constant, 1ms);
}

TEST(FairnessController, StaysWithinItsBounds) {
  FairnessController little, much;
  for (int i = 0; i < 100; ++i) {
    little.update(window(10ms));
    much.update(window(990ms));
  }
  EXPECT_DOUBLE_EQ(little.terms().exponent, 3);
  EXPECT_DOUBLE_EQ(much.terms().exponent, -6);
  EXPECT_EQ(little.terms().constant, queue.length());
  EXPECT_EQ(much.terms().constant, -queue.length());
}

TEST(FairnessController, ComesBackFromABoundInTheFirstWindow) {
  FairnessController controller;
  for (int i = 0; i < 100; ++i) controller.update(window(10ms));
  controller.update(window(600ms));
  EXPECT_LT(controller.terms().exponent, 3);
}

// Anti-windup: with other terms such a window would have been the same.
TEST(FairnessController, DoesNotLearnFromAWindowThatItCouldNotChange) {
  FairnessController controller;
  FairnessWindow all_granted = window(300ms);
  all_granted.refused = 0;
  FairnessWindow none_granted = window(700ms);
  none_granted.granted = 0;
  for (int i = 0; i < 10; ++i) {
    controller.update(all_granted);
    controller.update(none_granted);
  }
  EXPECT_DOUBLE_EQ(controller.terms().exponent, 0);
  EXPECT_EQ(controller.terms().constant, 0ms);
}

TEST(FairnessController, AShorterRunQueueBoundsTheConstant) {
  FairnessController controller;
  for (int i = 0; i < 100; ++i) controller.update(window(100ms));
  FairnessWindow shorter = window(400ms);
  shorter.queue = {.slice = 1ms, .runnable = 2};
  controller.update(shorter);
  EXPECT_EQ(controller.terms().constant, 2ms);
}

// A job whose share follows the permission that it has: the loop settles, from both sides.
TEST(FairnessController, SettlesWithinFivePercent) {
  for (const double begin : {-6.0, 3.0}) {
    FairnessController controller({}, {.exponent = begin});
    double fairness = 0;
    for (int i = 0; i < 20; ++i) {
      fairness = 0.7 + 0.6 / (1 + std::exp2(-controller.terms().exponent));
      controller.update(window(std::chrono::round<Duration>(fairness * 500ms)));
    }
    EXPECT_NEAR(fairness, 1, 0.05) << "from E = " << begin;
  }
}

}  // namespace
}  // namespace swapd::decide::coscheduling
