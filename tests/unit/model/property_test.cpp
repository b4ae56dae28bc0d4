// Random streams of events, fixed seeds: what must hold of the model whatever comes.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using model::Candidate;
using model::Model;

class Stream {
 public:
  explicit Stream(unsigned seed) : random_(seed) {}

  Event next() {
    const ThreadId who = any_thread();
    now_ += milliseconds(1);
    switch (pick(14)) {
      case 0:
      case 1:
        return Enrolled{now_, who, who.tid, 1000, nice(pick(40) - 20)};
      case 2:
      case 3:
      case 4:
        return Accessed{now_, who, any_resource(), static_cast<Evidence>(pick(6))};
      case 5:
        return Released{now_, who, any_resource()};
      case 6:
      case 7:
      case 8:
        return Blocked{now_, who, pick(300), many([&] { return any_resource(); })};
      case 9:
        return Woken{now_, who, maybe(any_thread()), maybe(any_resource()), pick(4) == 0};
      case 10:
        return Holders{now_, any_resource(), static_cast<Evidence>(3 + pick(3)), many([&] { return any_thread(); })};
      case 11:
      case 12:
        return QuantumUsed{now_, who};
      default:
        if (pick(2) == 0) return Execed{now_, who};
        return Exited{now_, who};
    }
  }
  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  ThreadId any_thread() { return {1000 + pick(12), static_cast<std::uint64_t>(pick(8) == 0 ? 2 : 1)}; }

 private:
  Resource any_resource() {
    const auto tid = static_cast<std::uint64_t>(1000 + pick(12));
    switch (pick(6)) {
      case 0:
        return {ResourceKind::signal, {tid, 1}};
      case 1:
        return {ResourceKind::child_exit, {tid, 1}};
      default:
        return {static_cast<ResourceKind>(pick(4)), {static_cast<std::uint64_t>(pick(4)), 0}};
    }
  }
  template <typename Make>
  std::vector<std::invoke_result_t<Make>> many(Make make) {
    std::vector<std::invoke_result_t<Make>> made;
    for (int i = pick(5); i > 0; --i) made.push_back(make());
    return made;
  }
  template <typename T>
  std::optional<T> maybe(T value) {
    return pick(3) == 0 ? std::nullopt : std::optional<T>(value);
  }
  std::mt19937 random_;
  Time now_{};
};

void check(const Model& model) {
  std::set<ThreadId> threads;
  std::set<pid_t> tids;
  std::size_t requests = 0, providers = 0, resources = 0;
  std::set<Resource> awaited;
  model.for_each_thread([&](const model::ThreadView& view) {
    threads.insert(view.id);
    ASSERT_TRUE(tids.insert(view.id.tid).second) << "a tid twice";
    requests += view.awaited.size();
    awaited.insert(view.awaited.begin(), view.awaited.end());
    ASSERT_TRUE(view.awaited.empty() || view.state == model::RunState::blocked);
  });
  model.for_each_resource([&](const Resource& resource) {
    ++resources;
    const auto& kind = model.settings().kinds[static_cast<std::size_t>(resource.kind)];
    const auto views = model.providers(resource, {});
    providers += views.size();
    ASSERT_LE(views.size(), kind.max_providers);
    ASSERT_TRUE(!views.empty() || awaited.contains(resource)) << "an unused resource";
    awaited.erase(resource);
    std::set<ThreadId> once;
    for (const auto& view : views) {
      ASSERT_LE(view.confidence, 2 * kind.base_confidence);
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
  std::set<ThreadId> leaves, direct;
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
    direct.insert(candidate.direct);
  }
  ASSERT_GE(model.direct_candidates(requester), direct.size());
  ASSERT_EQ(model.direct_candidates(requester) == 0, direct.empty());
}

class Random : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Random, testing::Range(1u, 21u));

TEST_P(Random, TheInvariantsHoldAfterEveryEvent) {
  Stream stream(GetParam());
  const auto settings = [&] {
    model::Settings made;
    for (auto& kind : made.kinds) {
      kind.base_confidence = static_cast<std::uint16_t>(1 + stream.pick(5));
      kind.max_providers = static_cast<std::uint16_t>(1 + stream.pick(6));
      kind.feedback = stream.pick(2) == 0 ? model::Feedback::paper : model::Feedback::wait;
      kind.counts = stream.pick(5) != 0;
    }
    return made;
  };
  Model model(settings());
  decide::DonationDecider decider({});
  for (int i = 0; i < 3000; ++i) {
    const Event event = stream.next();
    model.apply(event);
    if (stream.pick(200) == 0) model.set_settings(settings());
    ASSERT_NO_FATAL_FAILURE(check(model)) << "after event " << i;
    std::vector<ThreadId> blocked;
    model.for_each_thread([&](const model::ThreadView& view) {
      if (view.state == model::RunState::blocked) blocked.push_back(view.id);
    });
    for (const ThreadId id : blocked) ASSERT_NO_FATAL_FAILURE(check_candidates(model, id)) << "after event " << i;
    for (const decide::Donation& donation : decider.decide(model, blocked, {}))
      ASSERT_EQ(model.favoured(donation.requester), donation.path.front());
  }
  std::vector<ThreadId> left;
  model.for_each_thread([&](const model::ThreadView& view) { left.push_back(view.id); });
  for (const ThreadId id : left) model.apply(Exited{{}, id});
  EXPECT_EQ(model.counts().threads, 0u);
  EXPECT_EQ(model.counts().resources, 0u);
  EXPECT_EQ(model.counts().requesters, 0u);
  EXPECT_EQ(model.counts().providers, 0u);
}

TEST_P(Random, TheSameEventsGiveTheSameDecisions) {
  const auto run = [&] {
    Stream stream(GetParam());
    Model model({});
    decide::DonationDecider decider({});
    std::vector<decide::Donation> all;
    for (int i = 0; i < 2000; ++i) {
      model.apply(stream.next());
      for (auto& donation : decider.decide(model, {stream.any_thread(), stream.any_thread()}, {}))
        all.push_back(std::move(donation));
    }
    return all;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace swapd::test
