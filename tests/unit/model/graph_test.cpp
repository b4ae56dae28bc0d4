// Threads, resources and the lists between them [SWAP04 §3.1].
#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using model::KindSettings;
using model::RunState;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<ThreadId> providers(const World& world, const Resource& what) {
  std::vector<ThreadId> found;
  for (const auto& view : world.model.providers(what, {})) found.push_back(view.thread);
  return found;
}

TEST(Graph, AResourceLivesWhileItHasRequestersOrProviders) {
  World world;
  world.enroll(1, 2);
  EXPECT_EQ(world.model.counts().resources, 0u);
  world.provides(p2, r1);
  world.blocks(p1, {r1});
  EXPECT_EQ(world.model.counts().resources, 1u);
  EXPECT_EQ(world.model.counts().requesters, 1u);
  EXPECT_EQ(world.model.counts().providers, 1u);
  world.model.apply(Released{world.tick(), p2, r1});
  EXPECT_EQ(world.model.counts().resources, 1u);
  world.wakes_by_itself(p1);
  EXPECT_EQ(world.model.counts().resources, 0u);
}

TEST(Graph, AUsersThreadsHaveSoManyRecordsAndNoMore) {
  model::Settings settings;
  settings.records_a_user = 4;
  World world(settings);
  for (const ThreadId id : {p1, p2}) world.model.apply(Enrolled{world.tick(), id, id.tid, 1000, {}});
  for (const ThreadId id : {p3, p4}) world.model.apply(Enrolled{world.tick(), id, id.tid, id == p3 ? 1001u : 0u, {}});
  for (int i = 1; i <= 6; ++i) world.provides(p1, resource(i));
  EXPECT_EQ(world.model.records_of(1000), 4u);
  EXPECT_EQ(world.model.counts().resources, 4u) << "what nobody is known for is not kept";
  for (int i = 1; i <= 6; ++i)
    EXPECT_EQ(providers(world, resource(i)).size(), i > 2 ? 1u : 0u) << "the newest stay " << i;
  // Of another of its threads nothing is forgotten for it.
  world.provides(p2, r1);
  EXPECT_THAT(providers(world, r1), IsEmpty());
  world.blocks(p2, {resource(5), r1, r2});
  EXPECT_EQ(world.model.records_of(1000), 5u) << "a wait it is, for one of them";
  world.holders(resource(5), {p1, p2});
  EXPECT_THAT(providers(world, resource(5)), ElementsAre(p1)) << "a guess takes no room";
  world.wakes(p2, p1, resource(5));
  EXPECT_EQ(world.model.records_of(1000), 4u);
  // Others have theirs, and root has no limit.
  for (int i = 1; i <= 6; ++i) world.provides(p3, resource(i));
  for (int i = 1; i <= 6; ++i) world.provides(p4, resource(i));
  EXPECT_EQ(world.model.records_of(1001), 4u);
  EXPECT_EQ(world.model.records_of(0), 0u);
  EXPECT_EQ(world.model.counts().providers, 14u);
  // Another user by now: its records go with it.
  world.model.apply(Enrolled{world.tick(), p1, p1.tid, 1002, {}});
  EXPECT_EQ(world.model.records_of(1000), 0u);
  EXPECT_EQ(world.model.records_of(1002), 4u);
  world.exits(p1);
  EXPECT_EQ(world.model.records_of(1002), 0u);
}

// A server that runs for months answers connections without number, and no event tells that one has ended.
class AServerOfManyConnections : public testing::Test {
 protected:
  static constexpr int most = 1024;
  void SetUp() override {
    for (const ThreadId id : {p1, p2}) world.model.apply(Enrolled{world.tick(), id, id.tid, 0, {}});
  }
  World world;
};

TEST_F(AServerOfManyConnections, IsKnownForTheLastOnes) {
  for (int i = 1; i <= 10 * most; ++i) {
    world.blocks(p1, {resource(i)});
    if (i % 2 == 0) world.holders(resource(i), {p2});
    world.wakes(p1, p2, resource(i));
  }
  EXPECT_EQ(world.model.counts().providers, std::size_t{most});
  EXPECT_EQ(world.model.counts().resources, std::size_t{most});
  EXPECT_THAT(providers(world, resource(10 * most)), ElementsAre(p2));
  EXPECT_THAT(providers(world, resource(9 * most)), IsEmpty());
}

TEST_F(AServerOfManyConnections, IsKnownForWhatIsUsedAllTheTime) {
  for (int i = 1; i <= 10 * most; ++i) {
    if (i % 100 == 1) {
      world.blocks(p1, {r1});
      world.wakes(p1, p2, r1);
    }
    world.provides(p2, resource(i + 1));
  }
  EXPECT_THAT(providers(world, r1), ElementsAre(p2));
  EXPECT_EQ(world.confidence(p2, r1), 20 + 20) << "with all that was learnt";
}

TEST_F(AServerOfManyConnections, IsKnownForWhatIsAwaitedNow) {
  world.provides(p2, r1);
  world.blocks(p1, {r1});
  for (int i = 2; i <= 10 * most; ++i) world.holders(resource(i), {p2});
  EXPECT_EQ(world.favour(p1), p2);
  EXPECT_EQ(world.model.counts().providers, std::size_t{most});
}

TEST(Graph, ManyServersAreKnownForFewerConnectionsEach) {
  World world;
  constexpr int servers = 200;
  for (int i = 1; i <= servers; ++i) world.model.apply(Enrolled{world.tick(), thread(i), i, 0, {}});
  for (int i = 1; i <= 1000 * servers; ++i) world.provides(thread(1 + i % servers), resource(i));
  EXPECT_LE(world.model.counts().providers, std::size_t{65536 + servers});
  EXPECT_THAT(providers(world, resource(1000 * servers)), ElementsAre(thread(1)));
}

TEST(Graph, OnlyEnrolledThreadsTakePart) {
  World world;
  world.enroll(1, 1);
  world.provides(p2, r1);
  world.blocks(p2, {r1});
  world.holders(r1, {p2, p3});
  world.blocks(p1, {r1});
  world.wakes(p1, p2, r1);
  world.uses_quantum(p2);
  world.exits(p2);
  world.model.apply(Execed{world.tick(), p2});
  EXPECT_EQ(world.model.counts().threads, 1u);
  EXPECT_EQ(world.model.counts().resources, 0u);
}

TEST(Graph, AtMostLProvidersAndTheFrontOfTheLowestListLeaves) {
  World world(all_kinds({.base_confidence = 20, .max_providers = 3}));
  world.enroll(1, 7);
  for (const ThreadId id : {p2, p3, p4}) world.provides(id, r1);
  // All stand at K: the newcomer goes to the end of the middle list, whose front leaves.
  world.provides(p5, r1);
  EXPECT_THAT(providers(world, r1), ElementsAre(p3, p4, p5));
  // P4 falls into the low list and is the first to go, though P3 came before it.
  world.blocks(p1, {r1});
  world.favour(p1);  // P3
  world.uses_quantum(p1);
  EXPECT_EQ(world.favour(p1), p4);
  world.uses_quantum(p1);
  world.wakes(p1, p3, r1);
  EXPECT_EQ(world.confidence(p3, r1), 21);
  EXPECT_EQ(world.confidence(p4, r1), 19);
  world.provides(thread(6), r1);
  EXPECT_THAT(providers(world, r1), ElementsAre(p3, p5, thread(6)));
  // The high list is the last to lose somebody.
  world.provides(thread(7), r1);
  world.provides(p2, r1);
  world.provides(p4, r1);
  EXPECT_THAT(providers(world, r1), ElementsAre(p3, p2, p4));
}

TEST(Graph, WhenAllAreHighTheFrontOfTheHighListLeaves) {
  World world(all_kinds({.max_providers = 2}));
  world.enroll(1, 4);
  for (const ThreadId id : {p2, p3}) {
    world.blocks(p1, {r1});
    world.wakes(p1, id, r1);
  }
  world.provides(p4, r1);
  EXPECT_THAT(providers(world, r1), ElementsAre(p3, p4));
}

TEST(Graph, ConfidenceStaysWithin0And2K) {
  World world(all_kinds({.base_confidence = 3}));
  world.enroll(1, 3);
  world.provides(p2, r1);
  world.provides(p3, r1);
  for (int i = 0; i < 10; ++i) {
    world.blocks(p1, {r1});
    world.favour(p1);
    while (world.favour(p1) != p3) world.uses_quantum(p1);
    world.uses_quantum(p1);
    world.favour(p1);
    world.wakes(p1, p2, r1);
  }
  EXPECT_EQ(world.confidence(p2, r1), 6);
  EXPECT_EQ(world.confidence(p3, r1), 0);
}

TEST(Graph, NewSettingsPutEverythingWithinTheirLimits) {
  World world;
  world.enroll(1, 5);
  for (const ThreadId id : {p2, p3, p4, p5}) world.provides(id, r1);
  for (int i = 0; i < 20; ++i) {
    world.blocks(p1, {r1});
    world.wakes(p1, p4, r1);
  }
  EXPECT_EQ(world.confidence(p4, r1), 40);
  world.model.set_settings(all_kinds({.base_confidence = 10, .max_providers = 2}));
  EXPECT_THAT(providers(world, r1), UnorderedElementsAre(p4, p5));
  EXPECT_EQ(world.confidence(p4, r1), 20);
  EXPECT_EQ(world.confidence(p5, r1), 20);
  world.model.set_settings(all_kinds({.base_confidence = 0, .max_providers = 0}));
  EXPECT_EQ(world.model.settings().kinds[0].base_confidence, 1);
  EXPECT_EQ(world.model.counts().providers, 1u);
}

TEST(Graph, ARepeatedBlockedIsTheSameWaitAndAnotherSetIsAnother) {
  World world;
  world.enroll(1, 3);
  world.provides(p2, r1);
  world.provides(p3, r1);
  world.blocks(p1, {r1, r2});
  const Time since = world.model.thread(p1)->since;
  world.favour(p1);
  world.uses_quantum(p1);
  EXPECT_EQ(world.favour(p1), p3);
  world.blocks(p1, {r2, r1, r2});
  EXPECT_EQ(world.model.thread(p1)->since, since);
  EXPECT_EQ(world.favoured(p1), p3);
  EXPECT_EQ(world.value(p1, p2), 19);
  world.blocks(p1, {r1});
  EXPECT_GT(world.model.thread(p1)->since, since);
  EXPECT_EQ(world.favoured(p1), std::nullopt);
  EXPECT_EQ(world.value(p1, p2), 20);
  EXPECT_THAT(world.model.thread(p1)->awaited, ElementsAre(r1));
  EXPECT_EQ(world.model.counts().requesters, 1u);
}

TEST(Graph, AwaitedResourcesAreShownInTheirOrderOnce) {
  World world;
  world.enroll(1, 1);
  world.blocks(p1, {r3, r1, r2, r1});
  EXPECT_THAT(world.model.thread(p1)->awaited, UnorderedElementsAre(r1, r2, r3));
  EXPECT_EQ(world.model.thread(p1)->awaited.front(), r3);
  EXPECT_EQ(world.model.counts().requesters, 3u);
  world.blocks(p1, {});
  EXPECT_EQ(world.model.thread(p1)->state, RunState::blocked);
  EXPECT_THAT(world.model.thread(p1)->awaited, IsEmpty());
  EXPECT_EQ(world.model.counts().resources, 0u);
}

TEST(Graph, HoldersReplaceWhatAnEarlierScanFoundAndNothingElse) {
  World world;
  world.enroll(1, 5);
  world.provides(p2, r1);
  world.holders(r1, {p2, p3, p4});
  ASSERT_EQ(world.model.providers(r1, {}).size(), 3u);
  EXPECT_EQ(world.model.providers(r1, {})[0].evidence, Evidence::accessed);  // P2: not demoted
  world.blocks(p1, {r1});
  world.wakes(p1, p3, r1);
  world.holders(r1, {p5});
  EXPECT_THAT(providers(world, r1), ElementsAre(p3, p2, p5));
  EXPECT_EQ(world.confidence(p3, r1), 21);
  world.holders(r1, {});
  EXPECT_THAT(providers(world, r1), ElementsAre(p3, p2));
}

TEST(Graph, AScanFillsTheListButPushesOutNobody) {
  World world(all_kinds({.max_providers = 2}));
  world.enroll(1, 5);
  world.provides(p2, r1);
  world.holders(r1, {p3, p4, p5});
  EXPECT_THAT(providers(world, r1), ElementsAre(p2, p3));
  // The lock's owner is no guess.
  world.holders(r1, {p4}, Evidence::owner);
  EXPECT_THAT(providers(world, r1), ElementsAre(p2, p4));
  world.provides(p5, r1);
  EXPECT_THAT(providers(world, r1), ElementsAre(p5, p4));
}

TEST(Graph, ExitDropsTheThreadEverywhere) {
  World world;
  world.enroll(1, 3);
  world.provides(p2, r1);
  world.provides(p3, r1);
  world.provides(p2, r2);
  world.blocks(p1, {r1});
  world.blocks(p2, {r3});
  world.favour(p1);
  world.exits(p2);
  EXPECT_FALSE(world.model.thread(p2));
  EXPECT_THAT(providers(world, r1), ElementsAre(p3));
  EXPECT_EQ(world.model.counts().resources, 1u);
  EXPECT_THAT(world.leaves(p1), ElementsAre(p3));
  world.exits(p1);
  world.exits(p3);
  EXPECT_EQ(world.model.counts().threads, 0u);
  EXPECT_EQ(world.model.counts().resources, 0u);
  EXPECT_EQ(world.model.counts().requesters, 0u);
  EXPECT_EQ(world.model.counts().providers, 0u);
}

TEST(Graph, ExitEndsTheSignalAndTheChildExitOfTheThread) {
  World world;
  world.enroll(1, 3);
  const Resource signal = signal_to(p2);
  const Resource exit = child_exit_of(p2);
  world.provides(p3, signal);
  world.holders(exit, {p2}, Evidence::child);
  world.blocks(p1, {exit});
  EXPECT_THAT(world.leaves(p1), ElementsAre(p2));
  world.exits(p2);
  EXPECT_EQ(world.model.counts().providers, 0u);
  EXPECT_THAT(world.leaves(p1), IsEmpty());
  world.wakes_by_itself(p1);
  EXPECT_EQ(world.model.counts().resources, 0u);
}

TEST(Graph, AChildEndsWithItsLastThread) {
  World world;
  world.enroll(1, 1);
  const ThreadId main = p2, other = p3;
  for (const ThreadId id : {main, other}) world.model.apply(Enrolled{world.tick(), id, main.tid, 1000, {}});
  const Resource exit = child_exit_of(main);
  world.holders(exit, {main, other}, Evidence::child);
  world.blocks(p1, {exit});
  world.exits(main);
  EXPECT_THAT(world.leaves(p1), ElementsAre(other));
}

TEST(Graph, ARecycledTidIsAnotherThread) {
  World world;
  world.enroll(1, 2);
  world.provides(p2, r1);
  world.blocks(p1, {r1});
  const ThreadId later{p2.tid, 99};
  world.enroll(later);
  EXPECT_FALSE(world.model.thread(p2));
  EXPECT_THAT(world.leaves(p1), IsEmpty());
  world.exits(p2);  // comes late
  world.enroll(p2);
  EXPECT_TRUE(world.model.thread(later));
  EXPECT_FALSE(world.model.thread(p2));
  EXPECT_EQ(world.model.counts().threads, 2u);
}

TEST(Graph, ExecEndsTheWaitAndKeepsTheHistory) {
  World world;
  world.enroll(1, 2);
  world.provides(p2, r1);
  world.blocks(p2, {r2});
  world.model.apply(Execed{world.tick(), p2});
  EXPECT_EQ(world.model.thread(p2)->state, RunState::runnable);
  EXPECT_THAT(world.model.thread(p2)->awaited, IsEmpty());
  EXPECT_EQ(world.confidence(p2, r1), 20);
}

TEST(Graph, TheWaitTreeNamesWhomToLookAtAndWhatNobodyProvides) {
  World world;
  world.enroll(1, 5);
  world.provides(p2, r1);
  world.provides(p3, r1);
  world.provides(p1, r1);  // itself
  world.provides(p4, r2);
  world.blocks(p1, {r1});
  world.blocks(p3, {r2, r3});
  world.provides(p3, r3);  // only by the one who waits for it
  world.provides(p1, r2);  // a cycle
  const auto tree = world.model.wait_tree(p1);
  EXPECT_THAT(tree, UnorderedElementsAre(p2, p3, p4));
  EXPECT_EQ(tree.back(), p4);
  EXPECT_THAT(world.model.unprovided(p1), ElementsAre(r3));
  EXPECT_THAT(world.model.wait_tree(p5), IsEmpty());
  std::vector<Resource> all;
  world.model.for_each_resource([&](const Resource& one) { all.push_back(one); });
  EXPECT_THAT(all, UnorderedElementsAre(r1, r2, r3));
}

// The thread of one's own process that one told last need not have the other end: a client's main thread, told that its
// connection stands, has not the server's.
TEST(Graph, AThreadOfOnesOwnThatWasToldDoesNotMakeASocketProvided) {
  const Resource pipe{ResourceKind::pipe, {1, 2}};
  World world;
  for (const ThreadId id : {p1, p2}) world.model.apply(Enrolled{.time = world.tick(), .thread = id, .tgid = p1.tid});
  world.enroll(3, 3);
  world.blocks(p1, {r1, pipe});
  world.provides(p2, r1, Evidence::sent_to);
  world.provides(p2, pipe, Evidence::sent_to);
  EXPECT_THAT(world.model.unprovided(p1), ElementsAre(r1)) << "a pipe may well be within the process";
  world.provides(p3, r1, Evidence::sent_to);
  EXPECT_THAT(world.model.unprovided(p1), IsEmpty());
}

}  // namespace
}  // namespace swapd::test
