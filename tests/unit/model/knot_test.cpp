// The cost of a search is counted in providers that it looks at. Its memory changes no answer, its bounds none within.
#include "model/knot.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "model/search.h"
#include "unit/model/stream.h"

namespace swapd::test {
namespace {

using model::Index;
using model::Knot;
using model::none;
using model::ReachableLeaf;
using model::ReachNodes;
using model::RunState;
using model::Search;
using model::Store;

// Threads 0…n-1; each waits for a resource of its own, which others provide.
struct Graph {
  explicit Graph(int threads) {
    for (int i = 0; i < threads; ++i) {
      store.threads[store.add(thread(i))].state = RunState::runnable;
      of.push_back(store.find(thread(i)));
    }
  }
  void waits(
      int who, const std::vector<int>& providers, const std::function<int()>& confidence = [] { return 20; }) {
    const Index awaited = store.find_or_add(resource(who), 0);
    if (store.threads[of[who]].requests == none) store.add_request(of[who], awaited);
    store.threads[of[who]].state = RunState::blocked;
    for (const int other : providers)
      store.change_confidence(store.add_provider(awaited, of[other], Evidence::accessed), confidence() - 20);
    edges += providers.size();
  }
  Store store{all_kinds({.base_confidence = 20, .max_providers = 1000})};
  std::vector<Index> of;  // the index of each thread
  std::size_t edges = 0;
};

std::vector<int> from_to(int first, int last, int but = -1) {
  std::vector<int> all;
  for (int i = first; i <= last; ++i)
    if (i != but) all.push_back(i);
  return all;
}

// Thread 0 waits for thread 1, and the threads from 1 on for the next twenty each, round in a circle; `leaf` runs.
struct Circle : Graph {
  explicit Circle(int waiting) : Graph(waiting + 2), leaf(waiting + 1) {
    waits(0, {1});
    for (int i = 1; i <= waiting; ++i) {
      std::vector<int> next{leaf};
      for (int step = 1; step < 20; ++step) next.push_back(1 + (i - 1 + step) % waiting);
      waits(i, next);
    }
  }
  int leaf;
};

// The knot's own answer, whatever Search would do.
struct Knotted {
  explicit Knotted(const Store& store) : knot(store, nodes) {}
  const std::vector<ReachableLeaf>& run(Index requester) { return nodes[knot.run(requester)].reached; }
  ReachNodes nodes;
  Knot knot;
};

TEST(KnotBounds, EachThreadIsOpenedOnce) {
  // Ten threads that all wait for each other, and for the requester and a thread that runs.
  Graph graph(12);
  graph.waits(0, from_to(1, 10));
  for (int i = 1; i <= 10; ++i) graph.waits(i, from_to(0, 11, i));
  Knotted knotted(graph.store);
  ASSERT_THAT(knotted.run(graph.of[0]), testing::SizeIs(1));
  EXPECT_EQ(knotted.knot.looked(), graph.edges);
}

TEST(KnotBounds, ALargeKnotCostsWhatASmallOneCosts) {
  for (const int threads : {50, 100, 200, 400, 800}) {
    Circle circle(threads);
    Knotted knotted(circle.store);
    ASSERT_THAT(knotted.run(circle.of[0]), testing::SizeIs(1));
    // The requester has one; the last thread that is opened has twenty.
    EXPECT_GE(knotted.knot.looked(), 1 + Knot::max_looked) << threads;
    EXPECT_LT(knotted.knot.looked(), 1 + Knot::max_looked + 20) << threads;
  }
}

TEST(KnotBounds, AllProvidersOfTheRequesterAreLookedAt) {
  // The last of six hundred runs; the others wait for each other.
  Graph graph(601);
  graph.waits(0, from_to(1, 600));
  for (int i = 1; i < 600; ++i) graph.waits(i, {1 + i % 599, 1 + (i + 7) % 599});
  Knotted knotted(graph.store);
  ASSERT_THAT(knotted.run(graph.of[0]), testing::SizeIs(1));
  EXPECT_EQ(knotted.run(graph.of[0])[0].leaf, graph.of[600]);
}

TEST(KnotBounds, TheProvidersOfAThreadAreLookedUpOnceForAllUntilTheModelChanges) {
  Graph graph(13);
  for (int i = 0; i <= 11; ++i) graph.waits(i, from_to(0, 12, i));
  Knotted knotted(graph.store);
  for (int i = 0; i <= 11; ++i) (void)knotted.run(graph.of[i]);
  EXPECT_EQ(knotted.knot.remembered(), 12u);
  knotted.knot.forget();
  EXPECT_EQ(knotted.knot.remembered(), 0u);
}

// By trying every path, the value of the best to each thread that runs.
std::map<Index, float> best_by_trial(const Store& store, Index requester) {
  std::map<Index, float> best;
  std::set<Index> path;
  const std::function<void(Index, double, bool)> follow = [&](Index at, double value, bool first) {
    path.insert(at);
    store.for_each_provider(store.requests[store.threads[at].requests].resource, [&](Index provider) {
      const Index next = store.providers[provider].thread;
      const double onward = value * store.providers[provider].confidence / (first ? 1 : 20);
      if (path.contains(next)) return true;
      if (store.threads[next].state == RunState::blocked)
        follow(next, onward, false);
      else
        best[next] = std::max(best[next], static_cast<float>(onward));
      return true;
    });
    path.erase(at);
  };
  follow(requester, 1, true);
  return best;
}

std::map<Index, float> values(const std::vector<ReachableLeaf>& reached) {
  std::map<Index, float> values;
  for (const ReachableLeaf& one : reached) values[one.leaf] = static_cast<float>(one.value);
  return values;
}

class AnyGraph : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, AnyGraph, testing::Range(1u, 41u));

TEST_P(AnyGraph, WithinTheBoundAKnotHasTheBestPathToEachThread) {
  Stream stream(GetParam());
  // Six threads wait, three run. Each has four of the others as providers, so that cycles are many.
  Graph graph(9);
  for (int i = 0; i < 6; ++i) {
    std::set<int> providers;
    while (providers.size() < 4)
      if (const int other = stream.pick(9); other != i) providers.insert(other);
    // Up to K: no step makes a path better.
    graph.waits(i, {providers.begin(), providers.end()}, [&] { return 1 + stream.pick(20); });
  }
  Knotted knotted(graph.store);
  const auto& reached = knotted.run(graph.of[0]);
  const auto best = best_by_trial(graph.store, graph.of[0]);
  ASSERT_EQ(values(reached).size(), best.size());
  for (const auto& [leaf, value] : values(reached)) EXPECT_FLOAT_EQ(value, best.at(leaf));
  for (std::size_t i = 1; i < reached.size(); ++i) EXPECT_GE(reached[i - 1].value, reached[i].value);
}

// Confidences above K too, where a path may gain by a longer way: what has few cycles is searched whole.
TEST_P(AnyGraph, FewCyclesAreSearchedWhole) {
  Stream stream(GetParam());
  Graph graph(9);
  const auto confidence = [&] { return 1 + stream.pick(40); };
  for (int i = 0; i < 6; ++i) {
    std::vector<int> providers = from_to(i + 1, 5);
    providers.push_back(6 + stream.pick(3));
    if (i == 3 || i == 5) providers.push_back(stream.pick(3));  // it leads back
    graph.waits(i, providers, confidence);
  }
  Search search(graph.store);
  const auto found = values(search.run(graph.of[0]).reached);
  const auto best = best_by_trial(graph.store, graph.of[0]);
  ASSERT_EQ(found.size(), best.size());
  for (const auto& [leaf, value] : found) EXPECT_FLOAT_EQ(value, best.at(leaf));
}

TEST(SearchBounds, ALadderOfDiamondsCostsItsEdges) {
  for (const int rungs : {10, 100, 200}) {
    Graph graph(2 * rungs + 2);
    graph.waits(0, {1, 2});
    // A thread that has provided what it waits for itself, as those of a pool have, is no cycle.
    for (int rung = 0; rung < rungs; ++rung)
      for (const int side : {1, 2})
        graph.waits(2 * rung + side, rung + 1 < rungs ? std::vector{2 * rung + side, 2 * rung + 3, 2 * rung + 4}
                                                      : std::vector{2 * rungs + 1});
    Search search(graph.store);
    ASSERT_THAT(search.run(graph.of[0]).reached, testing::SizeIs(1));
    EXPECT_LE(search.steps(), 2 * graph.edges) << "each is looked at, and one leaf is taken over";
  }
}

TEST(SearchBounds, ManyThreadsThatWaitForEachOtherCostWhatFewCost) {
  Stream stream(1);
  for (const int threads : {50, 100, 200, 400, 800}) {
    Graph graph(threads + 1);
    for (int i = 0; i < threads; ++i) {
      std::set<int> providers{threads};  // it runs
      while (providers.size() < 20)
        if (const int other = stream.pick(threads); other != i) providers.insert(other);
      graph.waits(i, {providers.begin(), providers.end()});
    }
    Search search(graph.store);
    ASSERT_THAT(search.run(graph.of[0]).reached, testing::SizeIs(1));
    EXPECT_LT(search.steps(), 2 * Knot::max_looked) << threads;
  }
}

TEST(SearchBounds, OneLargeCircleIsBounded) {
  for (const int threads : {400, 4000}) {
    Circle circle(threads);
    Search search(circle.store);
    ASSERT_THAT(search.run(circle.of[0]).reached, testing::SizeIs(1));
    EXPECT_LT(search.steps(), Search::max_steps + Knot::max_looked + 40) << threads;
  }
}

TEST(SearchBounds, AWideGraphWithoutCyclesIsBoundedToo) {
  // Ten layers of forty threads that each wait for twenty of the next.
  constexpr int layers = 10, wide = 40;
  Graph graph(1 + (layers + 1) * wide);
  graph.waits(0, from_to(1, 20));
  for (int i = 0; i < layers * wide; ++i) {
    std::vector<int> next;
    for (int step = 0; step < 20; ++step) next.push_back(1 + (i / wide + 1) * wide + (i + step) % wide);
    graph.waits(1 + i, next);
  }
  Search search(graph.store);
  (void)search.run(graph.of[0]);
  EXPECT_LT(search.steps(), Search::max_steps + Knot::max_looked + 40) << "beyond it: twenty of the requester's own";
}

// --- what is remembered

// Paths and values, as a model without a memory gives them.
std::string candidates_of(const model::Model& model, ThreadId requester) {
  std::string out;
  for (const model::Candidate& candidate : model.candidates(requester)) {
    for (const ThreadId id : candidate.path) out += std::to_string(id.tid) + '>';
    out += std::to_string(candidate.resource.ids[0]) + (candidate.guessed ? " guessed " : " ") +
           std::to_string(static_cast<float>(candidate.confidence)) + '\n';
  }
  return out;
}
std::string afresh(const model::Model& model, ThreadId requester) {
  model::Model other(model.settings());
  other.restore(model.image());
  return candidates_of(other, requester);
}

// P1 waits for P2, which waits for P3 and P4; P2 also waits in a knot of so many threads.
class Remembered : public testing::TestWithParam<int> {
 protected:
  static constexpr int first = 11;
  static model::Settings settings() {
    model::Settings made;
    made.classes.resize(1);
    made.classes[0][static_cast<std::size_t>(ResourceKind::socket)].counts = false;
    return made;
  }
  Remembered() {
    world.enroll(1, 6);
    world.provides(p2, r1);
    world.provides(p3, r2);
    world.provides(p4, r2);
    world.provides(p5, r3);
    world.enroll(first, first + GetParam() - 1);
    std::vector<Resource> awaited{r2};
    for (int i = 0; i < GetParam(); ++i) {
      awaited.push_back(resource(first + i));
      for (int other = 0; other < GetParam(); ++other)
        if (other != i) world.provides(thread(first + other), resource(first + i));
    }
    world.blocks(p1, {r1});
    world.blocks(p2, awaited);
    for (int i = 0; i < GetParam(); ++i) world.blocks(thread(first + i), {resource(first + i)});
    world.favour(p1);
    before = candidates_of(world.model, p1);
  }
  // It changes what P1 can favour, and P1's answer is that of a model that has never been asked.
  void changes(const std::function<void()>& change) {
    ASSERT_EQ(candidates_of(world.model, p1), before);
    change();
    EXPECT_NE(candidates_of(world.model, p1), before);
    EXPECT_EQ(candidates_of(world.model, p1), afresh(world.model, p1));
  }
  void changes(const Event& event) {
    changes([&] { world.model.apply(event); });
  }
  World world{settings()};
  std::string before;
};
INSTANTIATE_TEST_SUITE_P(KnotOf, Remembered, testing::Values(0, 12));

TEST_P(Remembered, UntilAThreadIsEnrolledAnew) { changes(Enrolled{world.tick(), p2, p2.tid, 1000, {}, 1}); }
TEST_P(Remembered, UntilAThreadAccesses) { changes(Accessed{world.tick(), p5, r2, Evidence::accessed}); }
TEST_P(Remembered, UntilAThreadReleases) { changes(Released{world.tick(), p3, r2}); }
TEST_P(Remembered, UntilAThreadBlocks) { changes(Blocked{world.tick(), p3, 0, {}}); }
TEST_P(Remembered, UntilAWaitBecomesAnother) { changes(Blocked{world.tick(), p2, 0, {r3}}); }
TEST_P(Remembered, UntilAThreadIsWoken) { changes(Woken{world.tick(), p2, p4, r2, false}); }
TEST_P(Remembered, UntilHoldersAreKnown) { changes(Holders{world.tick(), r2, Evidence::holder, {p5}}); }
TEST_P(Remembered, UntilAQuantumIsUsed) { changes(QuantumUsed{world.tick(), p1, world.path[p1]}); }
TEST_P(Remembered, UntilAThreadExecutesAProgram) { changes(Execed{world.tick(), p2}); }
TEST_P(Remembered, UntilAThreadExits) { changes(Exited{world.tick(), p3}); }
TEST_P(Remembered, UntilThereAreOtherSettings) {
  changes([&] { world.model.set_settings(all_kinds({.base_confidence = 10})); });
}
TEST_P(Remembered, UntilConfidencesAreRestored) {
  changes([&] { world.model.restore_confidences(std::array{model::SavedConfidence{p4, r2, 5}}); });
}
TEST_P(Remembered, UntilAnImageIsRestored) {
  model::Model other(settings());
  other.restore(world.model.image());
  other.apply(Exited{world.tick(), p3});
  changes([&] { world.model.restore(other.image()); });
}

// A waker earns confidence with a resource for which others wait too.
TEST_P(Remembered, UntilAnothersWaitTeaches) {
  world.blocks(p5, {r2});
  before = candidates_of(world.model, p1);
  changes(Woken{world.tick(), p5, p4, r2, false});
}

TEST_P(AnyGraph, NoAnswerIsOlderThanTheLastEvent) {
  Stream stream(GetParam());
  World world;
  for (int i = 0; i < 12; ++i) world.enroll(ThreadId{1000 + i, 1});
  for (int i = 0; i < 400; ++i) {
    world.model.apply(stream.next());
    for (const ThreadId id : threads_of(world.model)) {
      const std::string once = candidates_of(world.model, id);
      ASSERT_EQ(once, afresh(world.model, id)) << "after event " << i;
      ASSERT_EQ(once, candidates_of(world.model, id)) << "the second time, after event " << i;
    }
  }
}

// --- the trees of many requesters

TEST_P(AnyGraph, TheTreesOfManyAreThoseOfEach) {
  Stream stream(GetParam());
  World world;
  for (int i = 0; i < 12; ++i) world.enroll(ThreadId{1000 + i, 1});
  for (int i = 0; i < 300; ++i) {
    world.model.apply(stream.next());
    const auto requesters = threads_of(world.model);
    std::set<ThreadId> each(requesters.begin(), requesters.end()), all = each, once;
    std::set<Resource> unprovided;
    for (const ThreadId id : requesters) {
      for (const ThreadId thread : world.model.wait_tree(id)) each.insert(thread);
      for (const Resource& one : world.model.unprovided(id)) unprovided.insert(one);
    }
    for (const auto& [requester, thread] : world.model.wait_trees(requesters)) {
      EXPECT_NE(requester, thread);
      EXPECT_TRUE(once.insert(thread).second) << "twice";
      all.insert(thread);
    }
    ASSERT_EQ(all, each);
    const auto found = world.model.unprovided(requesters);
    ASSERT_EQ(std::set(found.begin(), found.end()), unprovided);
  }
}

TEST(Trees, AThreadComesWithTheFirstRequesterWhoseTreeHasIt) {
  World world;
  world.enroll(1, 5);
  world.provides(p3, r1);
  world.provides(p4, r3);
  world.provides(p5, r2);
  world.blocks(p1, {r1});
  world.blocks(p2, {r1, r2});
  world.blocks(p3, {r3});
  std::vector<std::pair<ThreadId, ThreadId>> found;
  for (const auto& [requester, thread] : world.model.wait_trees(std::array{p1, p2}))
    found.emplace_back(requester, thread);
  EXPECT_THAT(found, testing::ElementsAre(std::pair(p1, p3), std::pair(p1, p4), std::pair(p2, p5)));
}

}  // namespace
}  // namespace swapd::test
