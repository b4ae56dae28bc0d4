// Random streams of events, fixed seeds: what must hold of the model whatever comes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "unit/model/stream.h"

namespace swapd::test {
namespace {

using model::Candidate;
using model::Model;

void check(const Model& model) {
  std::set<ThreadId> threads;
  std::set<pid_t> tids;
  std::size_t requests = 0, providers = 0, resources = 0;
  std::set<Resource> awaited;
  for (const ThreadId id : threads_of(model)) {
    const model::ThreadView view = *model.thread(id);
    threads.insert(view.id);
    ASSERT_TRUE(tids.insert(view.id.tid).second) << "a tid twice";
    requests += view.awaited.size();
    awaited.insert(view.awaited.begin(), view.awaited.end());
    ASSERT_TRUE(view.awaited.empty() || view.state == model::RunState::blocked);
  }
  model.for_each_resource([&](const Resource& resource) {
    ++resources;
    // Whichever class's they are.
    const auto& all = model.settings();
    int k = 0, l = 0;
    for (ClassId id = 0; id <= all.classes.size(); ++id) {
      k = std::max<int>(k, all.of(id, resource.kind).base_confidence);
      l = std::max<int>(l, all.of(id, resource.kind).max_providers);
    }
    const auto views = model.providers(resource, {});
    providers += views.size();
    ASSERT_LE(views.size(), l);
    ASSERT_TRUE(!views.empty() || awaited.contains(resource)) << "an unused resource";
    awaited.erase(resource);
    std::set<ThreadId> once;
    for (const auto& view : views) {
      ASSERT_LE(view.confidence, 2 * k);
      ASSERT_TRUE(threads.contains(view.thread)) << "a provider that has gone";
      ASSERT_TRUE(once.insert(view.thread).second) << "a provider twice";
    }
  });
  ASSERT_TRUE(awaited.empty()) << "an awaited resource without an object";
  const Model::Counts counts = model.counts();
  ASSERT_EQ(counts.threads, threads.size());
  ASSERT_EQ(counts.requesters, requests);
  ASSERT_EQ(counts.providers, providers);
  ASSERT_EQ(counts.resources, resources);
}

void check_candidates(const Model& model, ThreadId requester) {
  std::set<ThreadId> leaves;
  double last = 1e9;
  for (const Candidate& candidate : model.candidates(requester)) {
    ASSERT_LE(candidate.confidence, last * (1 + 1e-6));
    last = candidate.confidence;
    ASSERT_TRUE(leaves.insert(candidate.leaf).second);
    ASSERT_EQ(candidate.path.front(), candidate.direct);
    ASSERT_EQ(candidate.path.back(), candidate.leaf);
    std::set<ThreadId> once(candidate.path.begin(), candidate.path.end());
    ASSERT_EQ(once.size(), candidate.path.size()) << "a cycle";
    ASSERT_FALSE(once.contains(requester));
    for (const ThreadId id : candidate.path)
      ASSERT_EQ(model.thread(id)->state == model::RunState::blocked, id != candidate.leaf);
  }
}

class Random : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Random, testing::Range(1u, 21u));

TEST_P(Random, TheInvariantsHoldAfterEveryEvent) {
  Stream stream(GetParam());
  const auto settings = [&] {
    model::Settings made;
    made.classes.resize(static_cast<std::size_t>(stream.pick(3)));
    std::vector<model::KindTable*> tables = {&made.kinds};
    for (auto& table : made.classes) tables.push_back(&table);
    for (model::KindTable* table : tables)
      for (auto& kind : *table) {
        kind.base_confidence = static_cast<std::uint16_t>(1 + stream.pick(5));
        kind.max_providers = static_cast<std::uint16_t>(1 + stream.pick(6));
        kind.feedback = stream.pick(2) == 0 ? model::Feedback::paper : model::Feedback::wait;
        kind.counts = stream.pick(5) != 0;
      }
    return made;
  };
  Model model(settings());
  decide::ProviderChoice decider({});
  for (int i = 0; i < 3000; ++i) {
    const Event event = stream.next();
    model.apply(event);
    if (stream.pick(200) == 0) model.set_settings(settings());
    ASSERT_NO_FATAL_FAILURE(check(model)) << "after event " << i;
    std::vector<ThreadId> blocked;
    for (const ThreadId id : threads_of(model))
      if (model.thread(id)->state == model::RunState::blocked) blocked.push_back(id);
    for (const ThreadId id : blocked) ASSERT_NO_FATAL_FAILURE(check_candidates(model, id)) << "after event " << i;
    for (const decide::Donation& donation : decider.decide(model, blocked))
      ASSERT_TRUE(std::ranges::equal(decider.favoured(donation.requester), donation.path));
  }
  for (const ThreadId id : threads_of(model)) model.apply(Exited{{}, id});
  EXPECT_EQ(model.counts().threads, 0u);
  EXPECT_EQ(model.counts().resources, 0u);
  EXPECT_EQ(model.counts().requesters, 0u);
  EXPECT_EQ(model.counts().providers, 0u);
}

TEST_P(Random, TheSameEventsGiveTheSameDecisions) {
  const auto run = [&] {
    Stream stream(GetParam());
    Model model({});
    decide::ProviderChoice decider({});
    std::vector<decide::Donation> all;
    for (int i = 0; i < 2000; ++i) {
      model.apply(stream.next());
      for (auto& donation : decider.decide(model, std::array{stream.any_thread(), stream.any_thread()}))
        all.push_back(std::move(donation));
    }
    return all;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace swapd::test
