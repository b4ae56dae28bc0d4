// A model that is made of another's image is that model, for ever.
#include "model/image.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "decide/state.h"
#include "unit/model/stream.h"

namespace swapd::test {
namespace {

using model::Image;
using model::Model;

model::Settings random_settings(Stream& stream) {
  model::Settings made;
  made.classes.resize(2);
  for (auto* kinds : {&made.kinds, &made.classes[0], &made.classes[1]})
    for (auto& kind : *kinds) {
      kind.base_confidence = static_cast<std::uint16_t>(1 + stream.pick(5));
      kind.max_providers = static_cast<std::uint16_t>(1 + stream.pick(6));
      kind.feedback = stream.pick(2) == 0 ? model::Feedback::paper : model::Feedback::wait;
      kind.counts = stream.pick(5) != 0;
    }
  return made;
}

std::vector<ThreadId> blocked(const Model& model) {
  std::vector<ThreadId> found;
  for (const ThreadId id : threads_of(model))
    if (model.thread(id)->state == model::RunState::blocked) found.push_back(id);
  return found;
}

std::vector<std::int64_t> state_of(const decide::ProviderChoice& choice) {
  decide::StateWriter writer;
  writer(choice);
  return writer.numbers();
}

class RandomImage : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomImage, testing::Range(1u, 21u));

TEST_P(RandomImage, TheRestoredModelDecidesAsTheOtherFromThenOn) {
  Stream stream(GetParam());
  const model::Settings settings = random_settings(stream);
  Model live(settings);
  decide::ProviderChoice decider({});
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 150; ++i) {
      live.apply(stream.next());
      (void)decider.decide(live, blocked(live));
    }
    const Image image = live.image();
    Model restored(settings);
    restored.apply(Enrolled{{}, thread(500), 1, 1, {}});  // what was there before is not there any more
    restored.restore(image);
    ASSERT_EQ(restored.image(), image);
    decide::ProviderChoice again({});
    const std::vector<std::int64_t> numbers = state_of(decider);
    decide::StateReader saved(numbers);
    saved(again);
    ASSERT_TRUE(saved.good());
    ASSERT_EQ(state_of(again), state_of(decider));
    ASSERT_EQ(restored.counts().resources, live.counts().resources);
    ASSERT_EQ(restored.counts().requesters, live.counts().requesters);
    for (int i = 0; i < 150; ++i) {
      const Event event = stream.next();
      live.apply(event);
      restored.apply(event);
      std::vector<ThreadId> requesters = blocked(live);
      const auto expected = decider.decide(live, requesters);
      std::reverse(requesters.begin(), requesters.end());  // nothing depends on their order
      ASSERT_EQ(again.decide(restored, requesters), expected) << "round " << round << ", event " << i;
    }
    ASSERT_EQ(restored.image(), live.image());
    ASSERT_EQ(state_of(again), state_of(decider));
  }
}

TEST(ModelImage, HoldsAWaitWithItsDebitsAndConfidences) {
  World world(figure(model::Feedback::wait));
  world.enroll(1, 3);
  world.provides(thread(2), resource(1));
  world.provides(thread(3), resource(1));
  world.blocks(thread(1), {resource(1)});
  EXPECT_EQ(world.favour(thread(1)), thread(2));
  world.uses_quantum(thread(1));
  EXPECT_EQ(world.favour(thread(1)), thread(3));

  const Image image = world.model.image();
  ASSERT_EQ(image.threads.size(), 3U);
  EXPECT_EQ(image.threads[0].awaited, (std::vector<Resource>{resource(1)}));
  EXPECT_EQ(image.threads[0].debits, (std::vector<model::ImageDebit>{{thread(2), resource(1), 1}}));
  ASSERT_EQ(image.resources.size(), 1U);
  EXPECT_EQ(image.resources[0].providers[0].confidence, 20);

  World other(figure(model::Feedback::wait));
  other.model.restore(image);
  other.now = world.now;
  for (World* one : {&world, &other}) one->wakes(thread(1), thread(3), resource(1));
  EXPECT_EQ(other.confidence(thread(2), resource(1)), 19);
  EXPECT_EQ(other.confidence(thread(3), resource(1)), 21);
  EXPECT_EQ(other.model.image(), world.model.image());
}

// An image may come from a file: what contradicts itself is left out.
TEST(ModelImage, OfNonsenseIsAModelThatHoldsItsRules) {
  Image image;
  image.threads.push_back({.id = thread(1), .state = model::RunState::blocked, .awaited = {resource(1), resource(1)}});
  image.threads.push_back({.id = thread(1), .state = model::RunState::runnable});
  image.threads.push_back({.id = {thread(1).tid, 0}});
  image.threads.push_back({.id = {0, 7}});
  image.threads.push_back({.id = thread(2), .state = model::RunState::runnable, .awaited = {resource(2)}});
  image.threads[0].debits = {{thread(9), resource(1), 1}, {thread(2), resource(1), 2}, {thread(2), resource(8), 1}};
  image.resources.push_back(
      {resource(1), 7, true, {{thread(2), 60000, Evidence::woke, 4}, {thread(2), 1, Evidence::woke, 3}}});
  image.resources.push_back({resource(3), 0, false, {{thread(7), 1, Evidence::woke, 4}}});
  Model model({});
  model.restore(image);
  EXPECT_EQ(model.counts().threads, 2U);
  EXPECT_EQ(model.counts().resources, 1U);
  EXPECT_EQ(model.counts().requesters, 1U);
  EXPECT_EQ(model.counts().providers, 1U);
  EXPECT_EQ(model.providers(resource(1), {}).front().confidence, 40);
  const Image again = model.image();
  EXPECT_EQ(again.threads[0].debits.size(), 2U);
  model.restore(again);
  EXPECT_EQ(model.image(), again);
}

}  // namespace
}  // namespace swapd::test
