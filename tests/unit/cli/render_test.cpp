// Output for people, rendered from the very JSON that the server makes.
#include "cli/render.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "bus/json.h"
#include "fakes/fake_backend.h"

namespace swapd::cli {
namespace {

using fakes::FakeBackend;
using testing::HasSubstr;
using testing::Not;

TEST(Render, WhyTellsTheWholeChainInPlainWords) {
  FakeBackend backend;
  EXPECT_EQ(render_why(bus::why_json(*backend.why(FakeBackend::client_pid))),
            "client, pid 100, fifo 50, has been blocked for 12 ms, and whoever can end that is able to run\n"
            "  waits in recvfrom for socket:12345\n"
            "    => server, pid 200, thread 203: favoured, confidence 21, ended such a wait before\n"
            "        waits in flock for flock:fe:00:77:exclusive\n"
            "          => job, pid 300: favoured, confidence 20, holds the lock\n"
            "     - stranger, pid 400: not managed by swapd, so it cannot be helped\n"
            "  donation: in force\n");
}

TEST(Render, WhySaysWhyADonationDoesNothing) {
  FakeBackend backend;
  const std::string text = render_why(bus::why_json(*backend.why(FakeBackend::job_pid)));
  EXPECT_THAT(text, HasSubstr("lent to it: it runs at nice 19 on behalf of thread 100\n"));
  EXPECT_THAT(text, HasSubstr("donation: ineffective: a nice value means nothing to threads of other sessions"));
}

TEST(Render, WhyNamesAProviderThatIsStoppedAndSaysNoTimeThatIsNotKnown) {
  const std::string text = render_why(
      R"({"threads":[{"pid":1,"tid":1,"comm":"a","state":"blocked","since_ms":0,"since_known":false,"call":"flock",)"
      R"("waiting_for":[{"resource":"flock:fe:00:7:exclusive","kind":"flock","call":"flock","providers":)"
      R"([{"pid":2,"tid":2,"comm":"b","confidence":20,"favoured":false,"evidence":"owner","state":"stopped",)"
      R"("waiting_for":[]}]}],"donation":{"active":true,"effective":false,"reason":"stopped"}}]})");
  EXPECT_EQ(text,
            "a, pid 1, has been blocked\n"
            "  waits in flock for flock:fe:00:7:exclusive\n"
            "     - b, pid 2: confidence 20, stopped, holds the lock\n"
            "  donation: ineffective: the thread that could end the wait has been stopped (stopped)\n");
}

TEST(Render, WhySaysThatAThreadPolls) {
  const std::string text =
      render_why(R"({"threads":[{"pid":1,"tid":1,"comm":"a","state":"blocked","since_ms":5,"call":"clock_nanosleep",)"
                 R"("polls":true,"waiting_for":[]}]})");
  EXPECT_THAT(text, HasSubstr("  polls: it sleeps for short again and again"));
  EXPECT_THAT(text, Not(HasSubstr("no other thread")));
}

TEST(Render, WhyAndPsSayWhoIsImportantByTheWeightOfItsGroup) {
  const std::string thread =
      R"({"threads":[{"pid":1,"tid":1,"comm":"a","state":"blocked","since_ms":5,"call":"read","waiting_for":[],)"
      R"("base":{"policy":"other","nice":0},"importance":{"policy":"other","nice":-10},"importance_from":"weight",)"
      R"("group_weight":1000}]})";
  EXPECT_THAT(render_why(thread),
              HasSubstr("a, pid 1, nice 0, counts as nice -10 because its CPU group weighs 1000, "));
  EXPECT_THAT(render_ps(thread), HasSubstr("nice 0 (as nice -10)"));
}

TEST(Render, WhyAndPsSayWhomAThreadOfAParallelJobSpinsFor) {
  const auto threads = [](const std::string& rank_from, const std::string& mates) {
    return R"({"threads":[{"pid":812,"tid":812,"comm":"wave","state":"running","call":"none","waiting_for":[],)"
           R"("rank_from":")" +
           rank_from +
           R"(","job":{"id":812,"comm":"wave","state":"coscheduled","share":0.5,"cpu":0.48,"waiting":0.63,)" +
           R"("mates":)" + mates + "}}]}";
  };
  EXPECT_THAT(render_why(threads("coscheduling", "[813]")),
              HasSubstr("  parallel job wave, pid 812: coscheduled, it has its CPU in slots, together with its mates\n"
                        "    spins 63 % of its CPU time for thread 813\n"
                        "    has had 48 % of a CPU lately; 50 % of its CPU is its fair share\n"));
  EXPECT_THAT(render_why(threads("base", "[813,814]")), HasSubstr("for one of the threads 813, 814\n"));
  EXPECT_THAT(render_why(threads("base", R"([813,814],"threads":20)")),
              HasSubstr("for one of the threads 813, 814 …\n"));
  EXPECT_THAT(render_why(threads("base", R"([813,814],"mates_cpu":[0.12,0])")),
              HasSubstr("for one of the threads 813 (12 % of a CPU lately), 814 (0 % of a CPU lately)\n"));
  EXPECT_THAT(render_ps(threads("coscheduling", "[813]")), HasSubstr("job 812"));
  EXPECT_THAT(render_ps(threads("base", "[813]")), Not(HasSubstr("job 812")));
}

TEST(Render, StatusSaysWhereMemoryIsShortAndWhoIsAway) {
  const auto status = [](const std::string& memory) { return render_status(R"({"memory":)" + memory + "}"); };
  const std::string text = status(R"({"on":true,"groups":[{"group":"","thrashes":true,"lost":0.5,"stuck":""},)"
                                  R"({"group":"/ct","thrashes":true,"lost":0.25,"stuck":"no-set-frees-enough"},)"
                                  R"({"group":"/at-rest","thrashes":false,"lost":0,"stuck":""}],)"
                                  R"("away":[{"pid":812,"comm":"make","state":"away","since_s":12.4,)"
                                  R"("swapped_out_bytes":419430400}]})");
  EXPECT_THAT(text, HasSubstr("the machine thrashes: 50 % of a CPU's time is lost\n"));
  EXPECT_THAT(
      text,
      HasSubstr("group /ct thrashes: 25 % of a CPU's time is lost; to put programs away would free too little\n"));
  EXPECT_THAT(text, Not(HasSubstr("at-rest")));
  EXPECT_THAT(text, HasSubstr("make, pid 812, away since 12 s, 400.0 MiB swapped out; back when there is room, or by "
                              "`swapctl thaw 812`\n"));
  EXPECT_THAT(status("{}"), Not(HasSubstr("thrashes")));
}

TEST(Render, WhyAndPsSayTheLevelOfAThreadAndWhatRaisedIt) {
  const auto threads = [](const std::string& rank_from, const std::string& level) {
    return R"({"threads":[{"pid":7,"tid":7,"comm":"vim","state":"running","call":"none","waiting_for":[],)"
           R"("rank_from":")" +
           rank_from + R"(","level":)" + level + "}]}";
  };
  const std::string raised = R"({"level":11,"base":5,"awaited":"terminal-input","since_ms":12.4})";
  EXPECT_THAT(render_why(threads("level", raised)),
              HasSubstr("  level 11, 6 above its base: awaited terminal input 12 ms ago\n"));
  EXPECT_THAT(render_ps(threads("level", raised)), HasSubstr("level 11"));
  EXPECT_THAT(render_why(threads("base", R"({"level":5,"base":5})")), HasSubstr("  level 5\n"));
  EXPECT_THAT(render_why(threads("base", "null")), Not(HasSubstr("level")));
}

TEST(Render, WhySaysThatAProcessIsAwayAndHowItComesBack) {
  const std::string json = R"({"threads":[{"pid":100,"tid":101,"comm":"make","state":"blocked","since_ms":1,
    "away":{"pid":100,"state":"away","group":"/build","since_s":12.3,"swapped_out_bytes":104857600}}]})";
  EXPECT_THAT(render_why(json), HasSubstr("away since 12 s for want of memory, 100.0 MiB swapped out"));
  EXPECT_THAT(render_why(json), HasSubstr("`swapctl thaw 100`"));
}

TEST(Render, WhyOfNothingBlockedSaysSo) {
  EXPECT_EQ(render_why(R"({"threads":[]})"), "None of its threads is blocked.\n");
}

TEST(Render, PsIsATable) {
  FakeBackend backend;
  backend.comm = "cli\xC3\xABnt";  // seven bytes, six characters
  EXPECT_EQ(
      render_ps(bus::threads_json(backend.threads())),
      "PID  TID  COMM    CLASS        STATE                FOR  BASE     EFFECTIVE  LENT BY  WAITS FOR\n"
      "100  100  cli\xC3\xABnt  interactive  virtual-runnable   12 ms  fifo 50  fifo 50    -        socket:12345\n"
      "200  203  server  -            virtual-runnable   2.5 s  nice 0   fifo 49    100      "
      "flock:fe:00:77:exclusive\n"
      "300  300  job     batch        running           0.0 ms  nice 19  nice 19    100      -\n");
  EXPECT_THAT(render_ps(R"({"threads":[]})"), HasSubstr("swapctl run"));
}

TEST(Render, ClassesAndOneOfThem) {
  const std::string policy = R"({"settings":[
    {"table":"model","key":"confidence","value":"20","where":"built-in"},
    {"table":"class.desktop","key":"description","value":"\"what people see\"","where":"a.toml:2"},
    {"table":"class.desktop","key":"open","value":"false","where":"a.toml:3"},
    {"table":"class.desktop.model.pipe","key":"counts","value":"false","where":"a.toml:5"},
    {"table":"class.empty","key":"","value":"","where":"a.toml:7"}]})";
  const std::string threads = R"({"threads":[{"pid":7,"tid":7,"comm":"Xorg","class":"desktop"},
    {"pid":7,"tid":8,"comm":"Xorg:gl","class":"desktop"},{"pid":9,"tid":9,"comm":"sh","class":"default"}]})";
  const std::string limits =
      R"({"classes":[{"name":"backup","mode":"device","shaped":true,"limited":true,"origin":"made",
    "limits":[{"device":"/var","key":"both","value":10485760},{"device":"disk","key":"operations","value":50}],
    "devices":[{"device":"vda","kind":"disk","read_bytes":33554432,"written_bytes":0,"cached_bytes":512,"mapped_bytes":4096,"calls":517,
                "debts":[{"tid":31,"bytes":20971520}],"written_off_bytes":1048576,"delayed_calls":510,"delayed_s":3.94,"tokens":-16800}]},{"name":"default"}]})";
  const std::string all = classes_json(policy, threads, limits);
  EXPECT_EQ(render_classes(all),
            "CLASS    PROCESSES  THREADS  JOINED BY       I/O LIMITS                               DESCRIPTION\n"
            "backup           0        0  anybody         /var both 10MiB/s, disk operations 50/s\n"
            "default          1        1  anybody\n"
            "desktop          1        2  root and rules                                           what people see\n"
            "empty            0        0  anybody\n");
  auto backup = nlohmann::json::parse(all);
  backup["classes"] = nlohmann::json::array({backup["classes"][0]});
  backup["one"] = true;
  EXPECT_EQ(render_classes(backup.dump()),
            "Of donations it says nothing of its own: what [model] and [donation] say holds.\n"
            "\n"
            "I/O limits, of what the disk moves, of a class that was made:\n"
            "  /var both 10MiB/s\n"
            "  disk operations 50/s\n"
            "\n"
            "DEVICE      READ  WRITTEN  CACHED  MAPPED  CALLS  DELAYED  DELAYED FOR     TOKENS\n"
            "vda     32.0 MiB      0 B   512 B  4096 B    517      510        3.9 s  -16.4 KiB\n"
            "\n"
            "Thread 31 owes 20.0 MiB of vda, which it alone pays\n"
            "1024.0 KiB of vda were owed by threads that have ended, and nobody pays\n"
            "\n"
            "0 processes, 0 threads\n");
  auto one = nlohmann::json::parse(all);
  one["classes"] = nlohmann::json::array({one["classes"][2]});
  one["one"] = true;
  EXPECT_EQ(render_classes(one.dump()),
            "[class.desktop]\n"
            "description = \"what people see\"         # a.toml:2\n"
            "open = false                            # a.toml:3\n"
            "\n"
            "[class.desktop.model.pipe]\n"
            "counts = false                          # a.toml:5\n"
            "\n"
            "1 processes, 2 threads\n"
            "      7 Xorg\n");
}

TEST(Render, NamesCannotSteerTheTerminal) {
  FakeBackend backend;
  backend.comm = "a\x1b[31m\nb";
  for (const std::string& text : {render_ps(bus::threads_json(backend.threads())),
                                  render_why(bus::why_json(*backend.why(FakeBackend::client_pid))),
                                  render_dot(bus::graph_json(backend.graph()))}) {
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, HasSubstr("a?[31m?b"));
  }
}

TEST(Render, StatusNamesRivalsAndWarnings) {
  FakeBackend backend;
  const std::string text = render_status(bus::status_json(backend.status()));
  EXPECT_THAT(text, HasSubstr("observer       seccomp (bpf is not built in)\n"));
  EXPECT_THAT(text, HasSubstr("managed        4 threads of 3 processes, 1 listeners\n"));
  EXPECT_THAT(text, HasSubstr("CPU used       2.22 s (engine 1.25 s, worker 0.50 s, receivers 0.12 s, jobs 0.06 s, "
                              "memory 0.03 s, control 0.25 s), guard 0.01 s\n"));
  EXPECT_THAT(
      text,
      HasSubstr("budget         1.25 % of a CPU used, 2 % allowed now (5 % while it helps), each turn waits 2.5 ms, "
                "patience 4.0 ms\n"));
  EXPECT_THAT(text, HasSubstr(" threads (150 not heard of, for the budget's sake), "));
  EXPECT_THAT(text, HasSubstr("rival          ananicy-cpp (pid 7) also sets priorities\n"));
  EXPECT_THAT(text, HasSubstr("warning        no CAP_SYS_NICE"));
  EXPECT_THAT(text, HasSubstr("missing        traffic (netio): prog 'on_send': refused; calls are charged what they "
                              "ask for\n"));
}

TEST(Render, AnEventIsOneLine) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(render_event(bus::event_json(FakeBackend::donation_begun())),
            "22:13:20.250  donation-begun   server[203]  policy=fifo  resource=socket:12345  by=100  rt_priority=49");
}

TEST(Render, DurationsHaveTwoOrThreeDigits) {
  EXPECT_EQ(duration(0.04), "0.0 ms");
  EXPECT_EQ(duration(9.9), "9.9 ms");
  EXPECT_EQ(duration(9.97), "10 ms");
  EXPECT_EQ(duration(999), "999 ms");
  EXPECT_EQ(duration(999.9), "1.0 s");
  EXPECT_EQ(duration(59'990), "1 min 0 s");
  EXPECT_EQ(duration(3'661'000), "1 h 1 min");
}

TEST(Render, TheGraphShowsWhoSpinsInAParallelJob) {
  const std::string text = render_dot(R"({"nodes":[{"id":"job:8","type":"job","label":"wave 8, coscheduled"}],"edges":)"
                                      R"([{"from":"thread:8","to":"job:8","type":"spins","confidence":0.63}]})");
  EXPECT_THAT(text, HasSubstr(R"("job:8" [shape=hexagon, label="wave 8, coscheduled"])"));
  EXPECT_THAT(text, HasSubstr(R"("thread:8" -> "job:8" [style=dotted, label="63 %"])"));
}

// Graphviz itself is the judge, of a label that tries to end its string.
TEST(Render, GraphvizAcceptsTheGraph) {
  if (std::system("command -v dot >/dev/null 2>&1") != 0) GTEST_SKIP() << "Graphviz (dot) is not installed";
  FakeBackend backend;
  backend.comm = "\"]; evil [label=\"\\N\\";
  std::FILE* dot = ::popen("dot -Tsvg >/dev/null", "w");
  ASSERT_NE(dot, nullptr);
  const std::string text = render_dot(bus::graph_json(backend.graph()));
  std::fputs(text.c_str(), dot);
  EXPECT_EQ(::pclose(dot), 0) << text;
  EXPECT_THAT(text, HasSubstr(R"("t203" -> "r1" [style=dashed, label="21"])"));
  EXPECT_THAT(text, HasSubstr(R"("t100" -> "r1" [style=solid])"));
}

}  // namespace
}  // namespace swapd::cli
