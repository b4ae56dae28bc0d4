// `swapctl top` without a terminal: its rows, their order, and what keys do.
#include "cli/top/top.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <ncurses.h>  // names of keys

#include <stdexcept>

#include "bus/json.h"
#include "cli/top/top_io.h"
#include "cli/top/top_state.h"
#include "fakes/fake_backend.h"

namespace swapd::cli {
namespace {

using fakes::FakeBackend;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using Wish = TopState::Wish;

TopThread a_thread(long long tid, const std::string& comm, const std::string& state, double since_ms = 1) {
  return {.pid = tid / 10 * 10,
          .tid = tid,
          .comm = comm,
          .class_name = "default",
          .state = state,
          .own = "nice 0",
          .now = "nice 0",
          .since_ms = since_ms,
          .own_rank = 20,
          .own_nice = 0};
}
// psql waits for a postgres, which waits for another one, which runs.
TopSample sample() {
  TopSample made;
  made.rows = {a_thread(10, "psql", "virtual-runnable", 900), a_thread(20, "postgres", "virtual-runnable", 1500),
               a_thread(30, "postgres", "running", 5),        a_thread(40, "idle", "blocked", 9e6),
               a_thread(41, "idle-2", "blocked", 7),          a_thread(50, "busy", "queued", 80)};
  made.rows[2].lent_by = {10};
  made.providers = {{10, {20}}, {20, {30}}};
  return made;
}
std::vector<std::string> names(const std::vector<TopRow>& rows) {
  std::vector<std::string> found;
  for (const TopRow& row : rows) found.push_back(row.branch + row.thread.comm);
  return found;
}

TEST(Top, WhoWaitsForSomebodyComesFirst) {
  EXPECT_THAT(names(top_rows(sample(), {})), ElementsAre("postgres", "psql", "postgres", "busy", "idle-2", "idle"));
  EXPECT_THAT(names(top_rows(sample(), {.reversed = true})),
              ElementsAre("idle", "idle-2", "busy", "postgres", "psql", "postgres"));
}

TEST(Top, OtherOrders) {
  TopSample s = sample();
  s.rows[3].own_rank = 150;
  s.rows[4].class_name = "a";
  EXPECT_EQ(top_rows(s, {.order = TopOrder::priority}).front().thread.comm, "idle");
  EXPECT_EQ(top_rows(s, {.order = TopOrder::class_name}).front().thread.comm, "idle-2");
  EXPECT_EQ(top_rows(s, {.order = TopOrder::name}).front().thread.comm, "busy");
  EXPECT_EQ(top_rows(s, {.order = TopOrder::pid}).front().thread.comm, "psql");
}

TEST(Top, ATreeHasProvidersBelowTheirWaiters) {
  EXPECT_THAT(names(top_rows(sample(), {.tree = true})),
              ElementsAre("psql", "└─ postgres", "   └─ postgres", "busy", "idle-2", "idle"));
  TopSample two = sample();
  two.providers[10] = {20, 50};
  EXPECT_THAT(names(top_rows(two, {.tree = true})),
              ElementsAre("psql", "├─ postgres", "│  └─ postgres", "└─ busy", "idle-2", "idle"));
  TopSample circle = sample();
  circle.providers[30] = {10};
  EXPECT_EQ(top_rows(circle, {.tree = true}).size(), 6U) << "each once, wherever it begins";
}

TEST(Top, AFilterAndProcesses) {
  EXPECT_THAT(names(top_rows(sample(), {.filter = "IDLE"})), ElementsAre("idle-2", "idle"));
  EXPECT_THAT(names(top_rows(sample(), {.processes = true, .filter = "idle"})), ElementsAre("idle-2"));
}

TEST(Top, ReadsWhatSwapdSays) {
  FakeBackend backend;
  const std::string graph =
      R"({"nodes":[],"edges":[{"from":"thread:100","to":"socket:1","type":"requests"},{"from":"thread:203","to":"socket:1","type":"provides"},)"
      R"({"from":"nonsense","to":"socket:1","type":"provides"}]})";
  const TopSample s = top_sample(bus::status_json(backend.status()), bus::threads_json(backend.threads()), graph);
  ASSERT_EQ(s.rows.size(), 3U);
  EXPECT_EQ(s.rows[0].own, "fifo 50");
  EXPECT_EQ(s.rows[0].own_rank, 150);
  EXPECT_FALSE(s.rows[0].own_nice.has_value());
  EXPECT_EQ(s.rows[1].lent_by, (std::vector<long long>{100}));
  EXPECT_EQ(s.rows[2].own_nice, 19);
  EXPECT_EQ(s.providers.at(100).front(), 203);
  EXPECT_THROW((void)top_sample("{}", "{}", "{}"), std::exception);
  const auto summary = top_summary(s, &s, 2);
  EXPECT_EQ(summary[0], "swapd 0.1.0, observer seccomp: 4 threads of 3 processes: 1 running, 2 virtual-runnable");
  EXPECT_EQ(summary[1],
            "1 donations in force, 17 in all; 0 donations and 0 notifications a second; swapd uses 0.0 % of a CPU "
            "of 2 % (patience 4.0 ms)");
}

TEST(Top, LinesAreCutByCharactersAndSteerNoTerminal) {
  EXPECT_EQ(cut("└─ abc", 4), "└─ a");
  EXPECT_EQ(cut("abc", 9), "abc");
  FakeBackend backend;
  backend.comm = "a\x1b[31mb";
  const TopSample s = top_sample("{}", bus::threads_json(backend.threads()), R"({"edges":[]})");
  EXPECT_THAT(top_line({s.rows[0], "└─ "}, 0), Not(HasSubstr("\x1b")));
  const std::string heading = top_heading({.order = TopOrder::pid, .reversed = true}, 0);
  EXPECT_THAT(heading, HasSubstr("PID^"));
  const std::string line = top_line({sample().rows[0], ""}, 0);
  EXPECT_EQ(line.find("virtual-runnable"), heading.find("STATE")) << "columns stand below their headings";
}

TEST(TopKeys, MoveTheSelectionWhichStaysWithItsThread) {
  TopState state;
  TopSample s = sample();
  state.show(s);
  EXPECT_EQ(state.selected()->tid, 20);
  state.pressed(KEY_DOWN, 10);
  EXPECT_EQ(state.selected()->tid, 10);
  s.rows[0].since_ms = 2000;  // it is the first now
  state.show(s);
  EXPECT_EQ(state.selected()->tid, 10);
  EXPECT_EQ(state.selected_row(), 0);
  state.pressed(KEY_END, 10);
  EXPECT_EQ(state.selected()->comm, "idle");
  state.pressed(KEY_PPAGE, 3);
  EXPECT_EQ(state.selected_row(), 2);
  s.rows.resize(1);
  state.show(s);
  EXPECT_EQ(state.selected_row(), 0) << "the selected one has gone";
  state.show({});
  EXPECT_EQ(state.selected(), nullptr);
}

TEST(TopKeys, ChangeTheView) {
  TopState state;
  state.show(sample());
  state.pressed('t', 10);
  EXPECT_TRUE(state.view.tree);
  state.pressed(KEY_F(6), 10);
  EXPECT_EQ(state.view.order, TopOrder::priority);
  state.pressed('<', 10);
  state.pressed('<', 10);
  EXPECT_EQ(state.view.order, TopOrder::class_name);
  state.pressed('I', 10);
  EXPECT_TRUE(state.view.reversed);
  state.pressed('N', 10);
  EXPECT_EQ(state.view.order, TopOrder::pid);
  EXPECT_FALSE(state.view.reversed) << "another order begins the right way round";
}

TEST(TopKeys, SearchAndFilterGoAlongWithTheTyping) {
  TopState state;
  state.show(sample());
  for (const char c : std::string("/bus")) state.pressed(c, 10);
  EXPECT_EQ(state.selected()->comm, "busy");
  EXPECT_EQ(state.footer(), "search: bus_");
  state.pressed('\n', 10);
  state.pressed('n', 10);
  EXPECT_EQ(state.selected()->comm, "busy") << "the only one";
  for (const char c : std::string("\\idl")) state.pressed(c, 10);
  state.pressed(KEY_BACKSPACE, 10);
  EXPECT_EQ(state.view.filter, "id");
  state.pressed('\n', 10);
  state.show(sample());
  EXPECT_EQ(state.rows().size(), 2U);
  EXPECT_THAT(state.footer(), StartsWith("(only \"id\")"));
  state.pressed('\\', 10);
  state.pressed(27, 10);
  EXPECT_THAT(state.view.filter, IsEmpty());
  for (const char c : std::string("/zzz\n")) state.pressed(c, 10);
  EXPECT_TRUE(state.alert());
}

TEST(TopKeys, AskForWhatOthersDo) {
  TopState state;
  state.show(sample());
  EXPECT_EQ(state.pressed('q', 10), Wish::end);
  EXPECT_EQ(state.pressed('w', 10), Wish::explain);
  EXPECT_EQ(state.pressed(KEY_F(7), 10), Wish::less_nice);
  EXPECT_EQ(state.pressed('[', 10), Wish::more_nice);
  EXPECT_EQ(state.pressed(' ', 10), Wish::none);
  EXPECT_TRUE(state.paused());
  EXPECT_EQ(state.pressed(' ', 10), Wish::look);
  state.pressed('h', 10);
  EXPECT_THAT(state.text(), HasSubstr("tree"));
  EXPECT_EQ(state.pressed('t', 10), Wish::none);
  EXPECT_FALSE(state.view.tree) << "any key only goes back";
  EXPECT_THAT(state.text(), IsEmpty());
}

// [TAP08 §3], the monitor.
TEST(TopIo, HasARowForEachDeviceOfAClass) {
  const auto answer = [](long long read, long long calls, long long delayed, double delayed_s) {
    return fmt::format(R"({{"classes":[{{"name":"backup","mode":"device","auto":{{"protects":"stream"}},"devices":[
      {{"device":"vda","read_bytes":{},"written_bytes":0,"mapped_bytes":0,"cached_bytes":{},"calls":{},
        "delayed_calls":{},"delayed_s":{},"limit":4194304,"tokens":-65536}}]}},{{"name":"default","devices":[]}}]}})",
                       read, read / 4, calls, delayed, delayed_s);
  };
  const auto first = top_devices(answer(8 << 20, 100, 10, 1)), then = top_devices(answer(16 << 20, 300, 60, 11));
  EXPECT_EQ(top_io_text(then, &first, 2, 0),
            "CLASS   DEVICE  MODE            LIMIT/s  ACHIEVED/s  CACHED  CALLS/s  DELAYED/s  EACH FOR     TOKENS\n"
            "backup  vda     device  4096.0 KiB auto  4096.0 KiB    25 %      100         25    200 ms  -64.0 KiB\n");
  EXPECT_THAT(top_io_text(then, nullptr, 0, 0), HasSubstr("MOVED"));
  const std::string narrow = top_io_text(then, &first, 2, 20);
  EXPECT_EQ(narrow.substr(0, narrow.find('\n')), "CLASS   DEVICE  MODE");
  EXPECT_THAT(top_io_text({}, nullptr, 0, 0), HasSubstr("swapctl class create"));
  // One that has begun again.
  EXPECT_THAT(top_io_text(first, &then, 1, 0), HasSubstr("8192.0 KiB"));
}

}  // namespace
}  // namespace swapd::cli
