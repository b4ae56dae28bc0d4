// Replayed decisions are those of the live run: from any moment on, over gaps, and where they are not, it is seen.
#include "replay/replayer.h"

#include <gtest/gtest.h>

#include "replay/decode.h"
#include "unit/model/stream.h"
#include "unit/replay/recorder.h"

namespace swapd::test {
namespace {

using replay::Replayer;

struct Replayed {
  Replayer replayer{[](const Replayer::Change&) {}};
  explicit Replayed(const std::string& text) {
    replay::Decoder decoder("test.rec");
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      auto record = decoder.read(std::string_view(text).substr(at, end - at));
      at = end + 1;
      if (!record) {
        ADD_FAILURE() << record.error().context();
        return;
      }
      if (*record) replayer.apply(**record, decoder.line());
    }
  }
};

std::vector<ThreadId> some(Stream& stream) {
  std::vector<ThreadId> found;
  for (int i = stream.pick(6); i > 0; --i) found.push_back(stream.any_thread());
  return found;
}

class RandomRun : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomRun, testing::Range(1u, 11u));

TEST_P(RandomRun, FromTheMiddleOnAndOverAGapIsReplayedAsItWas) {
  Stream stream(GetParam());
  model::Settings settings;
  settings.classes.resize(2);
  for (auto* kinds : {&settings.kinds, &settings.classes[0], &settings.classes[1]})
    for (auto& kind : *kinds) kind.base_confidence = static_cast<std::uint16_t>(1 + stream.pick(4));
  Recorder live(settings, {.classes = {{.lending = {.strict = true}}, {.lending = {.realtime_allowed = false}}}});
  for (int i = 0; i < 1500; ++i) {
    if (i == 500) live.begin();
    if (i == 900) live.recording = false;
    if (i == 1000) live.begin(100);
    live.apply(stream.next());
    live.decide(some(stream));
    if (stream.pick(10) == 0) live.forget(stream.any_thread());
  }
  live.end();
  const Replayed replayed(live.text);
  const Replayer::Totals& totals = replayed.replayer.totals();
  EXPECT_EQ(totals.differing, 0U);
  EXPECT_EQ(totals.events, 900U);
  EXPECT_EQ(totals.gaps, 1U);
  EXPECT_EQ(totals.lost, 100U);
  EXPECT_TRUE(totals.ended);
  EXPECT_EQ(replayed.replayer.model().image(), live.model.image());
}

TEST(Replayer, ARunThatDidOtherwiseIsSeenWithItsLine) {
  Recorder live;
  live.apply(Enrolled{{}, thread(1), 1, 0, fifo(50)});
  live.apply(Enrolled{{}, thread(2), 2, 0, {}});
  live.apply(Accessed{{}, thread(2), resource(1)});
  live.begin();
  live.apply(Blocked{Time(milliseconds(1)), thread(1), 0, {resource(1)}});
  ASSERT_EQ(live.decide({thread(1)}).size(), 1U);
  // An event that the recorder has not seen.
  live.model.apply(Released{Time(milliseconds(2)), thread(2), resource(1)});
  ASSERT_EQ(live.decide({thread(1)}).size(), 0U);
  live.end();
  const Replayed replayed(live.text);
  ASSERT_TRUE(replayed.replayer.difference().has_value());
  EXPECT_EQ(replayed.replayer.totals().differing, 1U);
  const Replayer::Difference& difference = *replayed.replayer.difference();
  EXPECT_EQ(difference.line, 10U);
  EXPECT_TRUE(difference.live.empty());
  EXPECT_EQ(difference.replayed.size(), 1U);
}

TEST(Replayer, SettingsAndRulesOfTheRunDecide) {
  Recorder live(figure(model::Feedback::wait), {.lending = {.rt_ceiling = 30}});
  live.apply(Enrolled{{}, thread(1), 1, 0, fifo(50)});
  live.apply(Enrolled{{}, thread(2), 2, 0, {}});
  live.apply(Accessed{{}, thread(2), resource(1)});
  live.apply(Blocked{{}, thread(1), 0, {resource(1)}});
  live.begin();
  EXPECT_EQ(live.decide({thread(1)}).at(0).attr.rt_priority, 30);
  // They change: the daemon writes them anew, before what they change.
  decide::DonationRules strict{.lending = {.rt_ceiling = 20}};
  live.decider.set_rules(strict);
  live.encoder.add(live.text, strict);
  auto settings = live.model.settings();
  settings.kinds[0].counts = false;
  EXPECT_EQ(live.decide({thread(1)}).at(0).attr.rt_priority, 20);
  live.model.set_settings(settings);
  live.encoder.add(live.text, settings);
  EXPECT_TRUE(live.decide({thread(1)}).empty());
  EXPECT_EQ(Replayed(live.text).replayer.totals().differing, 0U);
}

}  // namespace
}  // namespace swapd::test
