// Lines of a recording: every record comes back as it went in, and what is no line says where and why.
#include <gmock/gmock.h>

#include "decide/state.h"
#include "replay/decode.h"
#include "replay/encode.h"
#include "unit/model/stream.h"
#include "unit/replay/recorder.h"

namespace swapd::test {
namespace {

using replay::Decoder;
using replay::Encoder;
using replay::Record;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The text that the records of a text give again.
std::string again(const std::string& text) {
  Decoder decoder("test.rec");
  Encoder encoder;
  std::string out;
  for (const std::string& line : lines_of(text)) {
    auto record = decoder.read(line);
    if (!record) {
      ADD_FAILURE() << record.error().context() << "\n" << line;
      return out;
    }
    if (*record) encoder.add(out, **record);
  }
  return out;
}

// The error of the first line that is none.
std::string mistake_in(const std::string& text) {
  Decoder decoder("test.rec");
  for (const std::string& line : lines_of(text))
    if (auto record = decoder.read(line); !record) return record.error().context();
  return "";
}

std::string opened() {
  Recorder recorder;
  recorder.begin();
  return recorder.text;
}

TEST(Codec, EveryRecordComesBackAsItWentIn) {
  model::Settings settings = figure(model::Feedback::paper);
  settings.classes.push_back(settings.kinds);
  settings.classes[0][1].base_confidence = 7;
  Recorder recorder(settings,
                    {.lending = {.rt_ceiling = 33, .strict = true},
                     .cross_user = true,
                     .classes = {{.lending = {.realtime_allowed = false}}, {.cross_user = true, .weight_above = 150}}});
  Stream stream(1);
  for (int i = 0; i < 300; ++i) {
    if (i == 100) recorder.begin();
    recorder.apply(stream.next());
    recorder.turn(i % 7 == 0);
    if (stream.pick(5) == 0) recorder.forget(stream.any_thread());
    if (i == 200) recorder.begin(17);
  }
  const SchedAttr deadline{.policy = SchedPolicy::deadline, .runtime_ns = 1, .deadline_ns = 2, .period_ns = UINT64_MAX};
  recorder.apply(Enrolled{recorder.now, {2147483647, UINT64_MAX}, 1, UINT32_MAX, deadline});
  recorder.apply(Blocked{recorder.now, thread(1), -1, {{ResourceKind::record_lock, {1, 2, 3, UINT64_MAX}}}});
  recorder.input(decide::PatienceChanged{recorder.now, milliseconds(16)});
  recorder.end();
  EXPECT_EQ(again(recorder.text), recorder.text);
}

// No field is as it is by default, and some are at the end of their range.
decide::ThreadProfiled a_profile() {
  return {.time = Time(milliseconds(1)),
          .thread = p1,
          .job = UINT64_MAX,
          .shares_memory = true,
          .fits = false,
          .room = 3,
          .window = milliseconds(250),
          .cpu = milliseconds(125),
          .spinning = 0.1,
          .yielding = 1.0 / 3,
          .share_known = false,
          .inner = 1e-300,
          .upper = 0.7,
          .group_use = 0.3,
          .group_others = 2.5,
          .weight = 88761,
          .group = UINT64_MAX - 1,
          .cpu_number = -1,
          .blocks = 12,
          .rivals = false,
          .demand = 0.3};
}

TEST(Codec, WhatCoschedulingLearnsAndWantsComesBackAsItWentIn) {
  using Mode = decide::CoschedulingConfig::Mode;
  for (const Mode mode : {Mode::off, Mode::automatic, Mode::on}) {
    decide::CoschedulingConfig config;
    config.mode = mode;
    config.classes = {Mode::on, Mode::off, Mode::automatic};
    config.realtime = mode != Mode::on;
    config.cpus = 7;
    Recorder recorder({}, {}, {}, config);
    recorder.apply(Enrolled{{}, p1, 1, 0, {}});
    recorder.begin();
    recorder.input(a_profile());
    recorder.input(decide::RunTime{Time(milliseconds(2)), p1, std::chrono::hours(10000), true});
    recorder.input(decide::RunTime{Time(milliseconds(3)), p1, Duration::zero(), false});
    recorder.input(decide::MessageCalled{Time(milliseconds(4)), p1, true, 7});
    decide::Grant grant{.run = {.thread = p1,
                                .attr = {.policy = SchedPolicy::idle, .nice = 7},
                                .cause = {decide::CoschedulingDecider::decider_name, {}, {}},
                                .payer = {},
                                .second_best = {}},
                        .ceiling_until = {},
                        .quota_until = {}};
    for (const auto& [lowers, quiet] : {std::pair(true, true), {true, false}, {false, true}}) {
      grant.run.lowers = lowers;
      grant.run.quiet = quiet;
      recorder.encoder.add(recorder.text, replay::Granted{recorder.now, {grant}, {}, {}});
    }
    recorder.end();
    EXPECT_EQ(again(recorder.text), recorder.text);
  }
}

TEST(Codec, WhatIsToldOfMemoryComesBackAsItWentIn) {
  Recorder recorder;
  recorder.apply(Enrolled{{}, p1, 1, 0, {}});
  recorder.begin();
  recorder.encoder.add(recorder.text,
                       decide::MemoryConfig{.on = true, .stay = {false, true}, .stays = milliseconds(7)});
  recorder.input(decide::MemoryFared{.time = Time(milliseconds(2)),
                                     .group = "/ct/a \"b\"",
                                     .window = milliseconds(1001),
                                     .refaults = 1,
                                     .in = 2,
                                     .out = 3,
                                     .page_cost = Duration(4),
                                     .room = -5,
                                     .swap_room = std::int64_t{1} << 50});
  recorder.input(decide::ProcessMemory{.time = Time(milliseconds(2)),
                                       .tgid = 7,
                                       .job = UINT64_MAX - 3,
                                       .group = "/ct",
                                       .needed = true,
                                       .resident = 8,
                                       .swapped = 9});
  for (const auto what :
       {decide::MemoryEvent::What::input, decide::MemoryEvent::What::refused, decide::MemoryEvent::What::asked})
    recorder.input(decide::MemoryEvent{Time(milliseconds(3)), 7, what});
  recorder.encoder.add(recorder.text, replay::Granted{recorder.now, {}, {}, {7, 9}});
  recorder.end();
  EXPECT_EQ(again(recorder.text), recorder.text);
}

TEST(Codec, WhatLevelsLearnAndWantComesBackAsItWentIn) {
  const decide::LevelsConfig config{
      .common = {.nice = 3}, .classes = {{.nice = 5, .display = true}, {}, {.nice = 1}}, .share = 0.7};
  Recorder recorder({}, {}, {}, {}, config);
  recorder.apply(Enrolled{{}, p1, 1, 0, {}});
  recorder.begin();
  recorder.apply(Ranked{Time(milliseconds(1)), p1, SchedAttr{.nice = -3}});
  recorder.apply(Ranked{Time(milliseconds(2)), p1, std::nullopt});
  recorder.end();
  EXPECT_EQ(again(recorder.text), recorder.text);
}

// All of a value's fields, as numbers.
template <typename T>
std::vector<std::int64_t> fields_of(const T& value) {
  decide::StateWriter out;
  T::state(value, out);
  return out.numbers();
}

// A field that the codec has forgotten is the default's in what comes back, so that each must differ from that.
TEST(Codec, EveryFieldOfAProfileComesBackExactly) {
  const decide::ThreadProfiled seen = a_profile();
  const std::vector<std::int64_t> before = fields_of(seen), untouched = fields_of(decide::ThreadProfiled{});
  ASSERT_EQ(before.size(), untouched.size());
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NE(before[i], untouched[i]) << "field " << i;
  Encoder encoder;
  std::string line;
  encoder.add(line, decide::Input(seen));
  Decoder decoder("test.rec");
  for (const std::string& one : lines_of(opened())) ASSERT_TRUE(decoder.read(one));
  auto record = decoder.read(line.substr(0, line.size() - 1));
  ASSERT_TRUE(record && *record);
  EXPECT_EQ(fields_of(std::get<decide::ThreadProfiled>(std::get<decide::Input>(**record))), before);
}

TEST(Codec, TimesAreWrittenRelativeToTheStart) {
  Encoder encoder(Time(std::chrono::seconds(5)));
  std::string out;
  encoder.add(out, Event(Exited{Time(std::chrono::seconds(4)), thread(1)}));
  EXPECT_EQ(out, "{\"type\":\"exited\",\"t\":-1000000000,\"thread\":[1001,1]}\n");
}

TEST(Codec, UnchangedGrantsAreNotWrittenAgain) {
  Recorder recorder;
  recorder.apply(Enrolled{{}, thread(1), 1, 0, fifo(50)});
  recorder.apply(Enrolled{{}, thread(2), 2, 0, {}});
  recorder.apply(Accessed{{}, thread(2), resource(1)});
  recorder.apply(Blocked{{}, thread(1), 0, {resource(1)}});
  recorder.begin();
  EXPECT_EQ(recorder.turn().size(), 1U);
  const std::size_t before = recorder.text.size();
  EXPECT_EQ(recorder.turn().size(), 1U);
  const auto lines = lines_of(recorder.text.substr(before));
  EXPECT_EQ(lines.at(0), R"({"type":"turn","t":0,"first":true})");
  EXPECT_EQ(lines.at(1), R"({"type":"granted","t":0,"same":true})");
  EXPECT_EQ(again(recorder.text), recorder.text);
}

TEST(Codec, WhatIsNoRecordingOrAnotherVersionIsSaid) {
  EXPECT_EQ(mistake_in("root:x:0:0\n"), "test.rec:1: not a recording of swapd");
  EXPECT_EQ(mistake_in("{}\n"), "test.rec:1: not a recording of swapd");
  EXPECT_EQ(mistake_in("[1]\n"), "test.rec:1: not a recording of swapd");
  EXPECT_EQ(mistake_in(R"({"type":"header","format":"else","version":1})"
                       "\n"),
            "test.rec:1: not a recording of swapd");
  EXPECT_EQ(mistake_in(R"({"type":"header","format":"swapd-recording","version":1})"
                       "\n"),
            "test.rec:1: a recording of version 1; this swapd reads version 4");
  EXPECT_EQ(mistake_in(R"({"type":"header","format":"swapd-recording"})"
                       "\n"),
            "test.rec:1: header: 'version' is not a whole number in its range");
}

TEST(Codec, ADamagedLineIsNamedWithItsNumberAndField) {
  const std::string good = opened();  // eight lines
  const std::vector<std::pair<std::string, std::string>> damaged = {
      {"", "test.rec:9: not a JSON object"},
      {"{\"type\":\"exited\",\"t\":1,", "test.rec:9: not a JSON object"},
      {"{}", "test.rec:9: 'type' is not a text"},
      {R"({"type":"nosuch","t":1})", "test.rec:9: unknown type 'nosuch'"},
      {R"({"type":"exited","t":1})", "test.rec:9: exited: 'thread' is not a list of 2"},
      {R"({"type":"exited","t":1.5,"thread":[1,1]})", "test.rec:9: exited: 't' is not a whole number in its range"},
      {R"({"type":"exited","t":1,"thread":[-1,1]})", "test.rec:9: exited: 'thread' is not a thread id"},
      {R"({"type":"exited","t":1,"thread":[2147483648,1]})",
       "test.rec:9: exited: 'thread' is not a whole number in its range"},
      {R"({"type":"released","t":1,"thread":[1,1],"resource":["sock",1]})",
       "test.rec:9: released: 'resource' is not a resource of a known kind"},
      {R"({"type":"released","t":1,"thread":[1,1],"resource":["socket",1,2,3,4,5]})",
       "test.rec:9: released: 'resource' is not a resource"},
      {R"({"type":"accessed","t":1,"thread":[1,1],"resource":["socket",1],"evidence":"dream"})",
       "test.rec:9: accessed: 'evidence' is not a known word"},
      {R"({"type":"enrolled","t":1,"thread":[1,1],"tgid":1,"uid":0,"base":{"policy":"other","nice":20}})",
       "test.rec:9: enrolled: 'base' is not scheduling attributes"},
      {R"({"type":"settings","kinds":[],"classes":[3]})",
       "test.rec:9: settings: 'classes' is not a list of lists of kinds"},
      {R"({"type":"enrolled","t":1,"thread":[1,1],"tgid":1,"uid":0,"base":{"policy":"other"},"class":-1})",
       "test.rec:9: enrolled: 'class' is not a whole number in its range"},
      {R"({"type":"granted","t":1,"same":true})", "test.rec:9: 'same' without a decision before it"},
      {R"({"type":"granted","t":1,"grants":[{}]})", "test.rec:9: granted: 'thread' is not a list of 2"},
      {R"({"type":"cpu-used","t":1,"thread":[1,1],"for":[2,1],"cpu_ns":"x"})",
       "test.rec:9: cpu-used: 'cpu_ns' is not a whole number in its range"},
      {R"({"type":"patience","t":1,"patience_ns":0})", "test.rec:9: patience: 'patience_ns' is not above 0"},
      {R"({"type":"run-time","t":1,"thread":[1,1],"cpu_ns":1,"runnable":2})",
       "test.rec:9: run-time: 'runnable' is not true or false"},
      {R"({"type":"run-time","t":1,"thread":[1,1],"runnable":true})",
       "test.rec:9: run-time: 'cpu_ns' is not a whole number in its range"},
      {R"({"type":"profiled","t":1,"thread":[1,1],"job":-1})",
       "test.rec:9: profiled: 'job' is not a whole number in its range"},
      {R"({"type":"coscheduling","mode":"maybe","realtime":true,"cpus":1})",
       "test.rec:9: coscheduling: 'mode' is not a known word"},
      {R"({"type":"coscheduling","mode":"auto","realtime":true,"cpus":1,"classes":["on","maybe"]})",
       "test.rec:9: coscheduling: 'classes' is not off, auto or on"},
      {R"({"type":"judged","t":1,"thread":[1,1],"verdict":"thinks"})",
       "test.rec:9: judged: 'verdict' is not a known word"},
      {R"({"type":"header","format":"swapd-recording","version":4})", "test.rec:9: unknown type 'header'"},
  };
  for (const auto& [line, error] : damaged) EXPECT_EQ(mistake_in(good + line + "\n"), error);
}

TEST(Codec, TheOrderOfLinesIsKept) {
  const std::string good = opened();
  const std::vector<std::string> lines = lines_of(good);
  ASSERT_EQ(lines.size(), 8U);
  const std::string event = R"({"type":"exited","t":1,"thread":[1,1]})";
  const std::string end = R"({"type":"end","events":0,"decisions":0,"lost":0})";
  const std::string gap = R"({"type":"gap","lost":3})";
  EXPECT_EQ(mistake_in(lines[0] + "\n" + event + "\n"), "test.rec:2: 'exited' before a snapshot");
  EXPECT_EQ(mistake_in(lines[0] + "\n" + lines[4] + "\n"), "test.rec:2: a snapshot before settings, rules and budgets");
  EXPECT_EQ(mistake_in(good + gap + "\n" + event + "\n"), "test.rec:10: 'exited' before a snapshot");
  EXPECT_EQ(mistake_in(good + end + "\n" + event + "\n"), "test.rec:10: a line after the end");
  EXPECT_EQ(
      mistake_in(good + R"({"type":"snapshot","t":0,"threads":1,"resources":0,"deciders":0})" + "\n" + event + "\n"),
      "test.rec:10: 'exited' inside a snapshot");
  // A snapshot that did not get through is given up by the gap behind it.
  EXPECT_EQ(mistake_in(good + R"({"type":"snapshot","t":0,"threads":1,"resources":0,"deciders":0})" + "\n" + gap +
                       "\n" + end + "\n"),
            "");
}

TEST(Codec, AnErrorIsOnePrintableLine) {
  const std::string line = mistake_in(opened() + "{\"type\":\"\\u001b[2Jnonsense\\n" + std::string(500, 'x') + "\"}\n");
  EXPECT_THAT(line, StartsWith("test.rec:9: unknown type '?[2Jnonsense?x"));
  EXPECT_LT(line.size(), 100U);
}

}  // namespace
}  // namespace swapd::test
