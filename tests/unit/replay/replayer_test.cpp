// Replayed decisions are those of the live run: from any moment on, over gaps, and where they are not, it is seen.
#include "replay/replayer.h"

#include <gtest/gtest.h>

#include "replay/decode.h"
#include "unit/decide/parallel_machine.h"
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

class RandomRun : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomRun, testing::Range(1u, 11u));

TEST_P(RandomRun, FromTheMiddleOnAndOverAGapIsReplayedAsItWas) {
  Stream stream(GetParam());
  model::Settings settings;
  settings.classes.resize(2);
  for (auto* kinds : {&settings.kinds, &settings.classes[0], &settings.classes[1]})
    for (auto& kind : *kinds) kind.base_confidence = static_cast<std::uint16_t>(1 + stream.pick(4));
  Recorder live(settings, {.classes = {{.lending = {.strict = true}}, {.lending = {.realtime_allowed = false}}}},
                {.ceiling = {.share = 0.5}, .user_time = milliseconds(3)});
  for (int i = 0; i < 1500; ++i) {
    if (i == 500) live.begin();
    if (i == 900) live.recording = false;
    if (i == 1000) live.begin(100);
    const Event event = stream.next();
    if (std::holds_alternative<QuantumUsed>(event))
      live.uses_quantum(stream.any_thread(), std::get<QuantumUsed>(event).time);
    else
      live.apply(event);
    if (const auto* exited = std::get_if<Exited>(&event)) live.forget(exited->thread);
    switch (stream.pick(12)) {
      case 0:
        live.input(decide::BudgetUsed{live.now, stream.any_thread(), 0, 0, milliseconds(stream.pick(9))});
        break;
      case 1:
        live.input(decide::CpuUsed{live.now, stream.any_thread(), stream.any_thread(), milliseconds(stream.pick(9))});
        break;
      case 2:
        live.input(decide::WaitEnded{live.now, stream.any_thread(), stream.any_thread()});
        break;
      case 3:
        live.input(decide::Judged{live.now, stream.any_thread(), decide::SpinJudge::Verdict::spins});
        break;
      case 4:
        live.input(decide::Forked{live.now, stream.any_thread()});
        break;
      case 5:
        live.input(decide::Delivered{live.now, stream.any_thread(), stream.pick(2) == 0});
        break;
      default:
        break;
    }
    if (const auto timers = live.panel->standing(0).timers; !timers.empty() && stream.pick(3) == 0) {
      const decide::Timer& timer = timers[static_cast<std::size_t>(stream.pick(static_cast<int>(timers.size())))];
      live.input(decide::TimerFired{.time = live.now,
                                    .kind = timer.kind,
                                    .requester = timer.requester,
                                    .serial = timer.serial,
                                    .wall_left = milliseconds(stream.pick(3)),
                                    .unreported = stream.pick(3) == 0,
                                    .gone = stream.pick(9) == 0});
    }
    live.turn(i % 10 == 0);
  }
  live.end();
  const Replayed replayed(live.text);
  const Replayer::Totals& totals = replayed.replayer.totals();
  EXPECT_EQ(totals.differing, 0U);
  EXPECT_GT(totals.events, 500U);
  EXPECT_GT(totals.decisions, 500U);
  EXPECT_EQ(totals.gaps, 1U);
  EXPECT_EQ(totals.lost, 100U);
  EXPECT_TRUE(totals.ended);
  EXPECT_EQ(replayed.replayer.model().image(), live.model.image());
}

// Two jobs in slots, each thread with a hog beside it, and now and then a donation to one of them.
class JobsInSlots {
 public:
  JobsInSlots() {
    for (const auto& [id, cpu, job] : {std::tuple(p1, 0, 1U), {p2, 1, 1U}, {p3, 0, 2U}, {p4, 1, 2U}}) {
      machine.add(id, cpu, job, 0.8);
      live.apply(Enrolled{now, id, id.tid, 0, {}});
    }
    for (const int cpu : {0, 1}) machine.add(thread(50 + cpu), cpu);
    live.apply(Enrolled{now, p5, p5.tid, 0, fifo(50)});
    live.apply(Accessed{now, p1, r1});
    live.on_look = [this](const decide::Look& look) {
      if (look.at == decide::Look::At::run_time) live.input(machine.run_time(look.thread, now));
    };
  }
  void step() {
    // A turn takes a microsecond.
    const Time next =
        std::max(std::min(live.panel->next().value_or(window_ends), window_ends), now + std::chrono::microseconds(1));
    machine.pass(next - now);
    now = live.now = next;
    if (now >= window_ends) {
      for (const auto& one : machine.end_window(now, ParallelRun::window)) live.input(one);
      window_ends += ParallelRun::window;
    }
    if (++steps % 50 == 0) live.apply(Blocked{now, p5, 0, {r1}});
    if (steps % 50 == 5) live.apply(Woken{now, p5, p1, r1, false});
    live.turn();
    machine.apply(live.panel->grants());
  }
  // After that many steps or more; a slot comes within ten.
  void step_until_slot(ThreadId id, int least) {
    for (int i = 0; i < least + 100 && (i < least || !in_slot(id)); ++i) step();
    ASSERT_TRUE(in_slot(id));
  }
  [[nodiscard]] bool in_slot(ThreadId id) const {
    return std::ranges::any_of(live.panel->grants(), [&](const decide::Grant& grant) {
      return grant.run.thread == id && grant.run.quiet && grant.run.attr.realtime();
    });
  }

  Recorder live{{}, {.linger = Duration::zero()}, {}, ParallelRun::two_cpus()};
  ParallelMachine machine;
  Time now{std::chrono::hours(1)};
  Time window_ends = now + ParallelRun::window;
  int steps = 0;
};

TEST(Replayer, JobsInSlotsAreReplayedFromTheMiddleOfASlotAndOverAGap) {
  JobsInSlots jobs;
  jobs.step_until_slot(p1, 200);
  jobs.live.begin();
  for (int i = 0; i < 1000; ++i) jobs.step();
  jobs.live.recording = false;
  jobs.step_until_slot(p3, 100);
  jobs.live.begin(100);
  for (int i = 0; i < 1000; ++i) jobs.step();
  jobs.live.end();
  const Replayed replayed(jobs.live.text);
  const Replayer::Totals& totals = replayed.replayer.totals();
  EXPECT_EQ(totals.differing, 0U);
  EXPECT_GT(totals.decisions, 1000U);
  EXPECT_GT(totals.donations, 10U);
  EXPECT_EQ(totals.gaps, 1U);
}

TEST(Replayer, JobsInSlotsThatRanOtherwiseAreSeen) {
  JobsInSlots jobs;
  jobs.step_until_slot(p1, 200);
  jobs.live.begin();
  // CPU time that the recorder has not seen.
  jobs.live.panel->on(decide::RunTime{jobs.now, p1, std::chrono::hours(1), true});
  for (int i = 0; i < 100; ++i) jobs.step();
  jobs.live.end();
  EXPECT_GT(Replayed(jobs.live.text).replayer.totals().differing, 0U);
}

TEST(Replayer, ARunThatDidOtherwiseIsSeenWithItsLine) {
  Recorder live;
  live.apply(Enrolled{{}, thread(1), 1, 0, fifo(50)});
  live.apply(Enrolled{{}, thread(2), 2, 0, {}});
  live.apply(Accessed{{}, thread(2), resource(1)});
  live.begin();
  live.apply(Blocked{Time(milliseconds(1)), thread(1), 0, {resource(1)}});
  ASSERT_EQ(live.turn().size(), 1U);
  // An event that the recorder has not seen.
  live.model.apply(Released{Time(milliseconds(2)), thread(2), resource(1)});
  ASSERT_EQ(live.turn().size(), 0U);
  live.end();
  const Replayed replayed(live.text);
  ASSERT_TRUE(replayed.replayer.difference().has_value());
  EXPECT_EQ(replayed.replayer.totals().differing, 1U);
  const Replayer::Difference& difference = *replayed.replayer.difference();
  EXPECT_GT(difference.line, 8U);
  EXPECT_TRUE(difference.live.grants.empty());
  EXPECT_EQ(difference.replayed.grants.size(), 1U);
}

TEST(Replayer, RulesAndBudgetsOfTheRunDecide) {
  Recorder live(figure(model::Feedback::wait), {.lending = {.rt_ceiling = 30}}, {.ceiling = {.share = 0.5}});
  live.apply(Enrolled{{}, thread(1), 1, 0, fifo(50)});
  live.apply(Enrolled{{}, thread(2), 2, 0, {}});
  live.apply(Accessed{{}, thread(2), resource(1)});
  live.apply(Blocked{{}, thread(1), 0, {resource(1)}});
  live.begin();
  EXPECT_EQ(live.turn().at(0).attr.rt_priority, 30);
  live.input(decide::BudgetUsed{live.now, thread(1), 0, 0, milliseconds(60)});
  live.turn();
  EXPECT_TRUE(live.panel->grants().front().ceiling_until.has_value()) << "its budget is spent";
  EXPECT_EQ(Replayed(live.text).replayer.totals().differing, 0U);
}

// A terminal is read, and the thread waits for another one.
TEST(Replayer, DecidesOnLevelsAgain) {
  const decide::LevelsConfig config{.common = {.nice = 5}};
  Recorder recorder({}, {}, {}, {}, config);
  recorder.apply(Enrolled{{}, p1, 1, 0, {}});
  recorder.apply(Enrolled{{}, p2, 2, 0, {.nice = 19}});
  recorder.apply(Accessed{{}, p2, socket_endpoint(9), Evidence::accessed});
  recorder.turn();
  recorder.begin();
  recorder.apply(Blocked{Time(milliseconds(1)), p1, 0, {pty_side(3, PtySide::master, 24)}});
  recorder.turn();
  recorder.apply(Woken{Time(milliseconds(2)), p1, {}, {}, true});
  recorder.turn();
  recorder.apply(Blocked{Time(milliseconds(3)), p1, 45, {socket_endpoint(9)}});
  recorder.turn();
  ASSERT_EQ(recorder.donation->donations().size(), 1u) << "because it is interactive";
  recorder.end();
  EXPECT_EQ(Replayed(recorder.text).replayer.totals().differing, 0U);
}

// A grant that only the live run had, or only the replay, is a difference too.
TEST(Replayer, AMissingTurnIsSeen) {
  Recorder live;
  live.apply(Enrolled{{}, thread(1), 1, 0, fifo(50)});
  live.apply(Enrolled{{}, thread(2), 2, 0, {}});
  live.apply(Accessed{{}, thread(2), resource(1)});
  live.begin();
  live.apply(Blocked{Time(milliseconds(1)), thread(1), 0, {resource(1)}});
  live.turn();
  std::string text = live.text;
  const std::size_t at = text.find("{\"type\":\"turn\"");
  text.erase(at, text.find('\n', at) + 1 - at);
  EXPECT_GT(Replayed(text).replayer.totals().differing, 0U);
}

}  // namespace
}  // namespace swapd::test
