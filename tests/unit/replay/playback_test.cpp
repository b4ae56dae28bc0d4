// The output of `swapd --replay`.
#include "replay/playback.h"

#include <gmock/gmock.h>

#include "unit/replay/recorder.h"

namespace swapd::test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct Played {
  std::vector<std::string> out;
  std::string error;
  bool same = false;
};

Played play(std::string_view text, bool json = false) {
  Played played;
  replay::Playback playback("a.rec", json, [&](const std::string& line) { played.out.push_back(line); });
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const bool whole = end != std::string_view::npos;
    if (const Status read = playback.read(text.substr(0, end), whole); !read) {
      played.error = read.error().context();
      return played;
    }
    text.remove_prefix(whole ? end + 1 : text.size());
  }
  const auto same = playback.finish();
  if (same)
    played.same = *same;
  else
    played.error = same.error().context();
  return played;
}

// Two clients wait: one for a server that waits for a helper, the other has a choice of two.
std::string recorded(std::uint64_t gap = 0, bool ended = true) {
  Recorder live(figure(model::Feedback::wait));
  const auto at = [](int ms) { return Time(milliseconds(ms)); };
  live.apply(Enrolled{at(0), thread(1), 1, 0, fifo(50)});
  live.apply(Enrolled{at(0), thread(4), 4, 0, nice(-5)});
  for (const int number : {2, 3, 5, 6}) live.apply(Enrolled{at(0), thread(number), number, 0, nice(10)});
  live.begin();
  live.apply(Accessed{at(1), thread(2), resource(1)});
  live.apply(Accessed{at(1), thread(3), resource(2)});
  live.apply(Accessed{at(1), thread(5), resource(3)});
  live.apply(Accessed{at(1), thread(6), resource(3)});
  live.apply(Blocked{at(2), thread(2), 0, {resource(2)}});
  live.apply(Blocked{at(3), thread(1), 0, {resource(1)}});
  live.apply(Blocked{at(4), thread(4), 0, {resource(3)}});
  live.turn();
  live.uses_quantum(thread(4), at(5));
  live.turn();
  live.apply(Woken{at(6), thread(1), thread(2), resource(1), false});
  live.turn();
  if (gap > 0) live.begin(gap);
  if (ended) live.end();
  return live.text;
}

TEST(Playback, PrintsEachChangeAndASummary) {
  const Played played = play(recorded());
  EXPECT_TRUE(played.same);
  EXPECT_THAT(played.out,
              ElementsAre("     0.004000000  1001 lends fifo 49 to 1002 1003 for socket:1",
                          "     0.004000000  1004 lends nice -5 to 1005 for socket:3, one of several, for 100.000 ms",
                          "     0.005000000  1004 lends nice -5 to 1006 for socket:3, one of several, for 100.000 ms",
                          "     0.006000000  1001 ends",  //
                          "8 events, 4 decisions in 0.006000000 s; all as in the live run"));
}

TEST(Playback, PrintsTheSameAsJson) {
  const Played played = play(recorded(), true);
  ASSERT_EQ(played.out.size(), 5U);
  EXPECT_EQ(played.out[1],
            R"({"type":"decision","time_s":0.004000000,"requester":1004,"path":[1005],"resource":"socket:3",)"
            R"("policy":"other","nice":-5,"rt_priority":0,"choice":true,"quantum_ms":100.000,"refusal":"none"})");
  EXPECT_EQ(played.out[3], R"({"type":"ended","time_s":0.006000000,"requester":1001})");
  EXPECT_EQ(played.out[4],
            R"({"type":"summary","events":8,"decisions":4,"donations":3,"gaps":0,"lost":0,"differing":0,)"
            R"("end":"whole","duration_s":0.006000000})");
}

TEST(Playback, ACutOffLastLineIsLeftOutAndSaid) {
  const std::string text = recorded(0, false);
  for (std::size_t cut = 1; cut < 60; ++cut) {
    const Played played = play(std::string_view(text).substr(0, text.size() - cut));
    EXPECT_EQ(played.error, "");
    EXPECT_TRUE(played.same);
    EXPECT_THAT(played.out.back(), EndsWith(cut == 1 ? "did not end it" : "cut off and was left out")) << cut;
  }
  EXPECT_THAT(play(text.substr(0, 300)).error, StartsWith("a.rec:2: ends before its first snapshot"));
  EXPECT_EQ(play(text.substr(0, 10)).error, "a.rec:1: not a recording of swapd");
  EXPECT_EQ(play("").error, "a.rec:1: not a recording of swapd");
}

TEST(Playback, ADamagedLineInTheMiddleIsAnError) {
  std::string text = recorded();
  text[text.size() / 2] = '\n';
  EXPECT_THAT(play(text).error, HasSubstr(": not a JSON object"));
}

TEST(Playback, ADifferenceIsShownWithBothAnswers) {
  std::string text = recorded();
  const std::size_t grants = text.find("\"type\":\"granted\"");
  text.replace(text.find("\"priority\":49", grants), 13, "\"priority\":48");
  const Played played = play(text);
  EXPECT_FALSE(played.same);
  ASSERT_EQ(played.out.size(), 8U);
  EXPECT_THAT(played.out[4], HasSubstr(": at 0.004000000 the live run decided otherwise"));
  EXPECT_THAT(played.out[5],
              StartsWith("  live:     1002 runs as fifo 48 for 1001; 1003 runs as fifo 49 for 1001; 1005"));
  EXPECT_THAT(played.out[6],
              StartsWith("  replayed: 1002 runs as fifo 49 for 1001; 1003 runs as fifo 49 for 1001; 1005"));
  EXPECT_THAT(played.out[7], EndsWith(" decisions are not those of the live run"));
  EXPECT_THAT(play(text, true).out[4], HasSubstr(R"("time_s":0.004000000,"live":"1002 runs as fifo 48)"));
}

TEST(Playback, AGapIsSaid) {
  const Played played = play(recorded(12));
  EXPECT_TRUE(played.same);
  EXPECT_THAT(played.out[4], "gap: 12 records lost");
  EXPECT_THAT(played.out[5], HasSubstr("; 12 records lost in 1 gaps"));
}

}  // namespace
}  // namespace swapd::test
