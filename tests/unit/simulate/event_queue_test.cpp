#include "simulate/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "simulate/random.h"

namespace swapd::simulate {
namespace {

using namespace std::chrono_literals;

TEST(NextEvents, AreThoseOfTheEarliestNodeWhateverIsMoved) {
  constexpr std::uint32_t nodes = 100;
  NextEvents events(nodes);
  std::vector<Duration> at(nodes, not_at_all);
  EXPECT_EQ(events.time(), not_at_all);
  Random random(1);
  for (int i = 0; i < 5000; ++i) {
    const std::uint32_t node = random.below(nodes);
    at[node] = random.below(10) == 0 ? not_at_all : Duration(random.below(1'000'000));
    events.set(node, at[node]);
    ASSERT_EQ(events.time(), *std::ranges::min_element(at));
    if (events.time() != not_at_all) {
      ASSERT_EQ(at[events.node()], events.time());
    }
  }
}

TEST(Pending, ComesInTheOrderOfTimesAndOfPushes) {
  Pending<int> pending;
  EXPECT_EQ(pending.time(), not_at_all);
  pending.push(20ns, 1);
  pending.push(30ns, 2);
  pending.push(10ns, 3);
  pending.push(30ns, 4);
  pending.push(20ns, 5);
  std::vector<int> order;
  Duration before{};
  while (pending.time() != not_at_all) {
    EXPECT_GE(pending.time(), before);
    before = pending.time();
    order.push_back(pending.pop());
  }
  EXPECT_EQ(order, (std::vector<int>{3, 1, 5, 2, 4}));
}

TEST(Random, IsTheSameForTheSameSeedAndHasItsMeans) {
  Random one(7), same(7), other(8);
  EXPECT_EQ(one.next(), same.next());
  EXPECT_NE(one.next(), other.next());
  double sum = 0, ones = 0;
  constexpr int numbers = 100'000;
  for (int i = 0; i < numbers; ++i) {
    sum += one.exponential();
    ones += one.below(4) == 1 ? 1 : 0;
    const double fraction = one.fraction();
    ASSERT_GT(fraction, 0);
    ASSERT_LE(fraction, 1);
  }
  EXPECT_NEAR(sum / numbers, 1, 0.01);
  EXPECT_NEAR(ones / numbers, 0.25, 0.005);
}

}  // namespace
}  // namespace swapd::simulate
