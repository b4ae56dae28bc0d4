// Upwards through the wait graph: whom does an event concern?
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "unit/model/stream.h"

namespace swapd::test {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(Waiters, AreThoseOfTheResourceAndThoseWhoWaitForThem) {
  World world;
  world.enroll(1, 4);
  world.provides(p2, r1);
  world.provides(p3, r2);
  world.blocks(p1, {r1});
  EXPECT_THAT(world.model.waiters_on(r1), UnorderedElementsAre(p1));
  EXPECT_THAT(world.model.waiters_on(p2), UnorderedElementsAre(p1));
  EXPECT_THAT(world.model.waiters_on(p3), IsEmpty());
  world.blocks(p2, {r2});
  world.blocks(p4, {r2});
  EXPECT_THAT(world.model.waiters_on(p3), UnorderedElementsAre(p1, p2, p4));
  EXPECT_THAT(world.model.waiters_on(r2), UnorderedElementsAre(p1, p2, p4));
  EXPECT_THAT(world.model.waiters_on(r3), IsEmpty());
  EXPECT_THAT(world.model.waiters_on(thread(9)), IsEmpty());
}

TEST(Waiters, OnACycleEachIsNamedOnce) {
  World world;
  world.enroll(1, 2);
  world.provides(p1, r2);
  world.provides(p2, r1);
  world.blocks(p1, {r1});
  world.blocks(p2, {r2});
  EXPECT_THAT(world.model.waiters_on(p1), UnorderedElementsAre(p1, p2));
}

// A thread that is not concerned has no more threads to favour than before: it need not be decided anew.
TEST(Waiters, OthersHaveNobodyNewToFavour) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Stream stream(seed);
    model::Model model{model::Settings{}};
    for (int step = 0; step < 400; ++step) {
      std::map<ThreadId, std::set<ThreadId>> before;
      for (const ThreadId id : threads_of(model))
        for (const model::Candidate& c : model.candidates(id)) before[id].insert(c.leaf);
      const Event event = stream.next();
      std::set<ThreadId> touched;
      const auto touch = [&] {
        for (const ThreadId id : model.concerned_by(event)) touched.insert(id);
      };
      if (std::holds_alternative<Exited>(event)) touch();
      model.apply(event);
      touch();
      for (const ThreadId id : threads_of(model)) {
        if (touched.contains(id)) continue;
        for (const model::Candidate& c : model.candidates(id))
          ASSERT_TRUE(before[id].contains(c.leaf))
              << "seed " << seed << ", step " << step << ", event " << event.index();
      }
    }
  }
}

}  // namespace
}  // namespace swapd::test
