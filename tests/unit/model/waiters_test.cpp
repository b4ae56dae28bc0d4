// Upwards through the wait graph: whom does an event concern?
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "unit/model/stream.h"

namespace swapd::test {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

const ThreadId p1 = thread(1), p2 = thread(2), p3 = thread(3), p4 = thread(4);
const Resource r1 = resource(1), r2 = resource(2), r3 = resource(3);

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

// Whom an event concerns, as the daemon asks: before it is applied for what ends, after it for what begins.
std::set<ThreadId> concerned(const model::Model& model, const Event& event) {
  std::set<ThreadId> out;
  const auto add = [&](const auto& what) {
    for (const ThreadId id : model.waiters_on(what)) out.insert(id);
  };
  std::visit(
      [&](const auto& e) {
        using T = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<T, Accessed> || std::is_same_v<T, Released> || std::is_same_v<T, Holders>) {
          add(e.resource);
        } else if constexpr (std::is_same_v<T, QuantumUsed>) {
          add(e.requester);
          out.insert(e.requester);
        } else {
          add(e.thread);
          out.insert(e.thread);
        }
        if constexpr (std::is_same_v<T, Woken>)
          if (e.through) add(*e.through);
      },
      event);
  return out;
}

// Whoever is not concerned has no more threads to favour than before: it need not be decided anew.
TEST(Waiters, OthersHaveNobodyNewToFavour) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Stream stream(seed);
    model::Model model{model::Settings{}};
    for (int step = 0; step < 400; ++step) {
      std::map<ThreadId, std::set<ThreadId>> before;
      model.for_each_thread([&](const model::ThreadView& view) {
        for (const model::Candidate& c : model.candidates(view.id)) before[view.id].insert(c.leaf);
      });
      const Event event = stream.next();
      std::set<ThreadId> touched = concerned(model, event);
      model.apply(event);
      touched.merge(concerned(model, event));
      std::vector<ThreadId> all;
      model.for_each_thread([&](const model::ThreadView& view) { all.push_back(view.id); });
      for (const ThreadId id : all) {
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
