// From the engine's ring to the lines of a recording, with a full ring and with a client that does not read: what is
// lost is counted, written down, and followed by a snapshot; what is left replays as it was.
#include "record/recording.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "base/fd.h"
#include "replay/playback.h"
#include "unit/model/stream.h"

namespace swapd::daemon {
namespace {

using test::Stream;

// An engine of its own, without a thread: model, decider, ring.
class Recorded : public ::testing::Test {
 protected:
  static std::vector<std::unique_ptr<decide::Decider>> deciders() {
    std::vector<std::unique_ptr<decide::Decider>> all;
    all.push_back(std::make_unique<decide::DonationDecider>(decide::DonationConfig{}));
    all.push_back(std::make_unique<decide::AutoLimitDecider>());
    return all;
  }
  // One event, a thread that leaves, a turn and what it grants: four records.
  void turn() {
    const ThreadId thread = stream.any_thread();
    const Event event = stream.next();
    now = std::visit([](const auto& e) { return e.time; }, event);
    clock.set(now);
    if (ring.on()) ring.event(event);
    panel.feed(event);
    if (ring.on()) ring.left(thread);
    panel.forget(thread);
    const decide::Turn one{.now = now, .first = true, .tick = true};
    if (ring.on()) ring.turn(one, false);
    const bool demands = panel.decide(one).new_demands;
    if (demands && ring.on()) ring.granted(panel, now);
  }
  void open() {
    ++snapshots;
    auto opening = std::make_unique<RecordRing::Opening>();
    opening->settings = model.settings();
    opening->snapshot = {now, model.image(), panel.save()};
    ring.open(std::move(opening));
  }
  Status begin() {
    return recording.begin(
        [this](std::string_view lines) {
          if (room) text += lines;
          return room;
        },
        {.swapd = "test", .boot_id = "none"});
  }
  // The summary of a replay, as JSON.
  std::string replayed() {
    std::string last;
    replay::Playback playback("test.rec", true, [&](const std::string& line) { last = line; });
    std::string_view left = text;
    while (!left.empty()) {
      const std::size_t end = left.find('\n');
      const Status read = playback.read(left.substr(0, end), true);
      if (!read) return read.error().context();
      left.remove_prefix(end + 1);
    }
    const auto same = playback.finish();
    if (!same) return same.error().context();
    return last;
  }
  ::testing::AssertionResult summary_has(std::string_view part) {
    const std::string summary = replayed();
    if (summary.find(part) != std::string::npos) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << summary;
  }
  bool rung() {
    pollfd one{wake.get(), POLLIN, 0};
    const bool readable = ::poll(&one, 1, 0) == 1;
    std::uint64_t count = 0;
    (void)!::read(wake.get(), &count, sizeof count);
    return readable;
  }

  Stream stream{1};
  model::Model model{{}};
  decide::Panel panel{model, {}, deciders()};
  Time now{};
  ManualClock clock;
  Fd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  RecordRing ring{wake.get(), 100};
  Recording recording{ring, [this] { open(); }, clock};
  std::string text;
  bool room = true;
  int snapshots = 0;
};

TEST_F(Recorded, NothingIsKeptWhileNobodyRecords) {
  for (int i = 0; i < 10; ++i) turn();
  EXPECT_FALSE(ring.on());
  EXPECT_FALSE(rung());
  EXPECT_TRUE(ring.take().empty());
}

TEST_F(Recorded, FromTheMiddleOfARunToItsEnd) {
  for (int i = 0; i < 300; ++i) turn();
  ASSERT_TRUE(begin().ok());
  EXPECT_FALSE(begin().ok()) << "there is one at a time";
  for (int i = 0; i < 300; ++i) {
    turn();
    if (rung()) recording.forward();
  }
  for (int i = 0; i < 5; ++i) turn();
  recording.end();
  EXPECT_FALSE(ring.on());
  EXPECT_EQ(snapshots, 1);
  EXPECT_TRUE(summary_has(R"("events":305,)"));
  EXPECT_TRUE(summary_has(R"("gaps":0,"lost":0,"differing":0,"end":"whole")"));
  text.clear();
  ASSERT_TRUE(begin().ok()) << "and another one after it";
  recording.end();
  EXPECT_TRUE(summary_has("\"end\":\"whole\""));
}

TEST_F(Recorded, AFullRingIsAGapAndASnapshotLater) {
  ASSERT_TRUE(begin().ok());
  for (int i = 0; i < 200; ++i) turn();  // four records each, and no one takes them
  EXPECT_TRUE(rung());
  recording.forward();
  EXPECT_EQ(snapshots, 1) << "not at once: each costs the engine a walk through the model";
  for (int i = 0; i < 1001; ++i) turn();  // a millisecond each
  EXPECT_TRUE(rung());
  recording.forward();
  EXPECT_EQ(snapshots, 2);
  for (int i = 0; i < 20; ++i) turn();
  EXPECT_TRUE(rung());
  recording.forward();
  recording.end();
  EXPECT_TRUE(summary_has(R"("differing":0,"end":"whole")"));
}

TEST_F(Recorded, AClientThatDoesNotReadIsAGapAsWell) {
  ASSERT_TRUE(begin().ok());
  recording.forward();
  for (int i = 0; i < 10; ++i) turn();
  room = false;
  recording.forward();
  for (int i = 0; i < 2500; ++i) {
    turn();
    if (rung()) recording.forward();
  }
  EXPECT_EQ(snapshots, 1) << "what for, as long as nobody reads";
  room = true;
  for (int i = 0; i < 1100; ++i) {
    turn();
    if (rung()) recording.forward();
  }
  EXPECT_EQ(snapshots, 2);
  recording.end();
  EXPECT_TRUE(summary_has(R"("gaps":1,"lost":)"));
  EXPECT_TRUE(summary_has(R"("differing":0,"end":"whole")"));
}

TEST_F(Recorded, AClientThatNeverReadsGetsARecordingThatSaysSo) {
  room = false;
  ASSERT_TRUE(begin().ok());
  recording.forward();
  for (int i = 0; i < 10; ++i) turn();
  recording.forward();
  room = true;
  recording.end();
  EXPECT_TRUE(summary_has(R"("events":0,"decisions":0,"donations":0,"gaps":1,"lost":)"));
}

}  // namespace
}  // namespace swapd::daemon
