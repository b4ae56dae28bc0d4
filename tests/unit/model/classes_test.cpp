// A class's settings for its members' waits.
#include <gtest/gtest.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

// Class 1 starts with 5 and remembers two; class 2 with 10 and three.
model::Settings two_classes() {
  model::Settings settings = all_kinds({.base_confidence = 20, .max_providers = 4});
  settings.classes.resize(2);
  settings.classes[0].fill({.base_confidence = 5, .max_providers = 2});
  settings.classes[1].fill({.base_confidence = 10, .max_providers = 3});
  return settings;
}

TEST(Classes, KAndLOfAResourceAreThoseOfTheFirstWhoWaitsForIt) {
  World world(two_classes());
  const Resource r = resource(1);
  world.enroll(1, 4);
  world.enroll(thread(5), {}, 1000, 1);
  world.enroll(thread(6), {}, 1000, 2);
  for (const int number : {1, 2, 3, 4}) world.provides(thread(number), r);
  EXPECT_EQ(world.confidence(thread(1), r), 20) << "of the class of who made it known";
  world.blocks(thread(5), {r});
  EXPECT_EQ(world.model.providers(r, {}).size(), 2U);
  EXPECT_EQ(world.confidence(thread(3), r), 5) << "who was at K is at K";
  world.blocks(thread(6), {r});
  world.wakes_by_itself(thread(5));
  EXPECT_EQ(world.confidence(thread(3), r), 5) << "who comes later changes nothing";
  world.wakes(thread(6), thread(3), r);
  EXPECT_EQ(world.confidence(thread(3), r), 6);
}

TEST(Classes, WhichKindsCountIsSaidByTheWaitersClass) {
  model::Settings settings = two_classes();
  for (auto& kind : settings.classes[0]) kind.counts = false;
  World world(settings);
  world.enroll(1, 1);
  world.enroll(thread(2), {}, 1000, 1);
  world.enroll(thread(3), {}, 1000, 2);
  world.provides(thread(1), resource(1));
  world.blocks(thread(2), {resource(1)});
  world.blocks(thread(3), {resource(1)});
  EXPECT_TRUE(world.leaves(thread(2)).empty());
  EXPECT_EQ(world.leaves(thread(3)), std::vector<ThreadId>{thread(1)});
}

TEST(Classes, FeedbackIsThatOfTheWaitersClass) {
  model::Settings settings = two_classes();
  for (auto& kind : settings.classes[0]) kind.feedback = model::Feedback::paper;
  World world(settings);
  const Resource r = resource(1);
  world.enroll(1, 2);
  world.enroll(thread(5), {}, 1000, 1);
  world.enroll(thread(6), {}, 1000, 2);
  world.provides(thread(1), r);
  world.provides(thread(2), r);
  world.blocks(thread(5), {r});
  const ThreadId charged = world.favour(thread(5));
  world.uses_quantum(thread(5));
  EXPECT_EQ(world.confidence(charged, r), 4) << "at once";
  world.blocks(thread(6), {r});
  const ThreadId other = world.favour(thread(6));
  world.uses_quantum(thread(6));
  EXPECT_EQ(world.confidence(other, r), 5) << "a debit of its wait";
}

TEST(Classes, OneThatIsNotThereIsTheFirst) {
  World world(two_classes());
  world.enroll(thread(1), {}, 1000, 9);
  world.provides(thread(1), resource(1));
  EXPECT_EQ(world.confidence(thread(1), resource(1)), 20);
}

}  // namespace
}  // namespace swapd::test
