// The contract of docs/design.md, Contracts, field by field: what stands here may be added to, never changed.
#include "bus/json.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "fakes/fake_backend.h"

namespace swapd::bus {
namespace {

using fakes::FakeBackend;
using nlohmann::json;
using testing::ElementsAre;
using testing::IsSupersetOf;

std::vector<std::string> keys(const json& object) {
  std::vector<std::string> out;
  for (const auto& [key, value] : object.items()) out.push_back(key);
  return out;
}

TEST(Json, StatusHasTheContractsFields) {
  FakeBackend backend;
  const json s = json::parse(status_json(backend.status()));
  EXPECT_THAT(keys(s), IsSupersetOf({"version", "observer", "observer_reason", "managed_threads", "managed_processes",
                                     "listeners", "donations_active", "donations_total", "notifications_total",
                                     "events_lost", "rivals"}));
  EXPECT_EQ(s["observer"], "seccomp");
  EXPECT_EQ(s["donations_total"], 17);
  EXPECT_EQ(s["rivals"], json::array({"ananicy-cpp (pid 7) also sets priorities"}));
  EXPECT_EQ(s["missing"], json::array({{{"what", "traffic (netio)"},
                                        {"why", "prog 'on_send': refused"},
                                        {"instead", "calls are charged what they ask for"}}}));
}

TEST(Json, StatusHasTheCpuTimeOfAllThreadsAndTheBudget) {
  FakeBackend backend;
  const json s = json::parse(status_json(backend.status()));
  EXPECT_EQ(s["cpu"], (json{{"engine_s", 1.25},
                            {"worker_s", 0.5},
                            {"receivers_s", 0.125},
                            {"jobs_s", 0.0625},
                            {"memory_s", 0.03125},
                            {"control_s", 0.25},
                            {"total_s", 2.21875},
                            {"guard_s", 0.01}}));
  EXPECT_EQ(s["budget"],
            (json{{"share", 0.05}, {"share_now", 0.02}, {"used", 0.0125}, {"wait_ms", 2.5}, {"patience_ms", 4.0}}));
  EXPECT_EQ(s["unheard_threads"], 150);
  EXPECT_EQ(s["engine_cpu_s"], s["cpu"]["engine_s"]) << "the first names stay";
  EXPECT_EQ(s["worker_cpu_s"], s["cpu"]["worker_s"]);
  EXPECT_EQ(s["receivers_cpu_s"], s["cpu"]["receivers_s"]);
}

TEST(Json, StatusHasTheParallelJobs) {
  FakeBackend backend;
  StatusView view = backend.status();
  EXPECT_EQ(json::parse(status_json(view))["jobs"], json::array()) << "none is an empty list";
  view.jobs = {{.id = 700,
                .state = "coscheduled",
                .comm = "wave",
                .members = {{.tid = 701, .share = 0.5, .cpu = 0.25, .waiting = 0.75}, {.tid = 702}},
                .waste = 0.125,
                .due = 0.5,
                .slots = 12,
                .refused_busy = 3,
                .refused_debt = 2,
                .used_s = 3,
                .entitled_s = 4}};
  const json jobs = json::parse(status_json(view))["jobs"];
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0], (json{{"id", 700},
                           {"comm", "wave"},
                           {"state", "coscheduled"},
                           {"members",
                            {{{"tid", 701}, {"share", 0.5}, {"cpu", 0.25}, {"waiting", 0.75}},
                             {{"tid", 702}, {"share", 1.0}, {"cpu", 0.0}, {"waiting", 0.0}}}},
                           {"waste", 0.125},
                           {"due", 0.5},
                           {"calls_granted", 12},
                           {"calls_refused", 5},
                           {"calls_refused_by", {{"other_job", 3}, {"debt", 2}}},
                           {"used_s", 3.0},
                           {"entitled_s", 4.0},
                           {"fairness", 0.75}}));
}

TEST(Json, JobThatWasDueNothingYetIsFair) {
  FakeBackend backend;
  StatusView view = backend.status();
  view.jobs = {{.id = 700, .state = "alone", .comm = "w\"ave", .members = {}}};
  const json job = json::parse(status_json(view))["jobs"][0];
  EXPECT_EQ(job["fairness"], 1.0);
  EXPECT_EQ(job["members"], json::array());
  EXPECT_EQ(job["comm"], "w\"ave");
}

TEST(Json, PsHasTheContractsFields) {
  FakeBackend backend;
  const json ps = json::parse(threads_json(backend.threads()));
  ASSERT_EQ(ps["threads"].size(), 3U);
  const json& t = ps["threads"][0];
  EXPECT_THAT(keys(t),
              IsSupersetOf({"pid", "tid", "comm", "class", "state", "base", "effective", "importance",
                            "importance_from", "group_weight", "rank_from", "job", "waiting_for", "donated_by"}));
  EXPECT_EQ(t["base"], (json{{"policy", "fifo"}, {"nice", 0}, {"rt_priority", 50}}));
  EXPECT_EQ(t["waiting_for"], json::array({"socket:12345"}));
  EXPECT_EQ(ps["threads"][1]["donated_by"], json::array({100}));
  EXPECT_EQ(ps["threads"][1]["effective"]["rt_priority"], 49);
}

TEST(Json, PsSaysWhetherAThreadIsImportantByItsGroupsWeight) {
  ThreadView by_itself;
  by_itself.base.nice = -5;
  ThreadView by_weight;
  by_weight.by_weight.emplace().nice = -10;
  by_weight.group_weight = 1000;
  const json threads = json::parse(threads_json({by_itself, by_weight}))["threads"];
  EXPECT_EQ(threads[0]["importance_from"], "base");
  EXPECT_EQ(threads[0]["importance"], threads[0]["base"]);
  EXPECT_EQ(threads[1]["importance_from"], "weight");
  EXPECT_EQ(threads[1]["importance"]["nice"], -10);
  EXPECT_EQ(threads[1]["group_weight"], 1000);
}

TEST(Json, StatusSaysWhereMemoryIsShortAndWhoHasLeftItForThat) {
  StatusView status;
  EXPECT_EQ(json::parse(status_json(status))["memory"],
            (json{{"on", false}, {"groups", json::array()}, {"away", json::array()}, {"swapped_out_total_bytes", 0}}));
  status.memory.on = true;
  status.memory.groups = {{"/ct", true, 0.5, "no-set-frees-enough"}};
  status.memory.away = {{812, "make", "away", "/ct", 12.5, 1 << 20}};
  status.memory.swapped_out_total = 7 << 20;
  const json memory = json::parse(status_json(status))["memory"];
  EXPECT_EQ(memory["groups"][0],
            (json{{"group", "/ct"}, {"thrashes", true}, {"lost", 0.5}, {"stuck", "no-set-frees-enough"}}));
  EXPECT_EQ(memory["away"][0], (json{{"pid", 812},
                                     {"comm", "make"},
                                     {"state", "away"},
                                     {"group", "/ct"},
                                     {"since_s", 12.5},
                                     {"swapped_out_bytes", 1 << 20}}));
  EXPECT_EQ(memory["swapped_out_total_bytes"], 7 << 20);
}

TEST(Json, WhySaysThatAProcessIsAwayForWantOfMemory) {
  ThreadView there, away;
  away.away = MemoryView::Away{
      .pid = 812, .comm = "make", .state = "away", .group = "/ct", .since_s = 12.5, .swapped_out = 1 << 20};
  const json threads = json::parse(why_json({there, away}))["threads"];
  EXPECT_TRUE(threads[0]["away"].is_null());
  EXPECT_EQ(threads[1]["away"]["pid"], 812);
  EXPECT_EQ(threads[1]["away"]["swapped_out_bytes"], 1 << 20);
}

TEST(Json, PsSaysTheLevelOfAThreadAndWhatRaisedIt) {
  ThreadView without, base, raised, lent;
  base.level.emplace(5, 5, "", 0);
  raised.level.emplace(11, 5, "terminal-input", 12.5);
  lent = raised;
  lent.donated_by = {7};
  lent.effective.nice = -10;
  const json threads = json::parse(threads_json({without, base, raised, lent}))["threads"];
  EXPECT_TRUE(threads[0]["level"].is_null());
  EXPECT_EQ(threads[1]["level"], (json{{"level", 5}, {"base", 5}}));
  EXPECT_EQ(threads[2]["level"], (json{{"level", 11}, {"base", 5}, {"awaited", "terminal-input"}, {"since_ms", 12.5}}));
  std::vector<std::string> from;
  for (const json& t : threads) from.push_back(t["rank_from"]);
  EXPECT_THAT(from, ElementsAre("base", "base", "level", "donation"));
}

TEST(Json, PsSaysWhatTheRankOfAThreadComesFrom) {
  ThreadView own, weighed, in_vain, lent, in_job, coscheduled, both;
  weighed.by_weight.emplace();
  in_vain.donated_by = {7};
  lent.donated_by = {7};
  lent.effective.nice = -10;
  in_job.job = {.id = 700,
                .comm = "wave",
                .state = "useful",
                .share = 0.5,
                .cpu = 0.25,
                .waiting = 0.125,
                .threads = 2,
                .mates = {8},
                .mates_cpu = {0.5}};
  coscheduled = in_job;
  coscheduled.job->coscheduled = true;
  both = lent;
  both.job = coscheduled.job;
  const json threads = json::parse(threads_json({own, weighed, in_vain, in_job, coscheduled, lent, both}))["threads"];
  std::vector<std::string> from;
  for (const json& t : threads) from.push_back(t["rank_from"]);
  EXPECT_THAT(from, ElementsAre("base", "weight", "base", "base", "coscheduling", "donation", "donation"));
  EXPECT_TRUE(threads[0]["job"].is_null());
  EXPECT_EQ(threads[3]["job"], (json{{"id", 700},
                                     {"comm", "wave"},
                                     {"state", "useful"},
                                     {"share", 0.5},
                                     {"cpu", 0.25},
                                     {"waiting", 0.125},
                                     {"threads", 2},
                                     {"mates", {8}},
                                     {"mates_cpu", {0.5}}}));
}

TEST(Json, WhyHasTheContractsFieldsAtEveryDepth) {
  FakeBackend backend;
  const json why = json::parse(why_json(*backend.why(FakeBackend::client_pid)));
  ASSERT_EQ(why["threads"].size(), 1U);
  const json& t = why["threads"][0];
  EXPECT_THAT(keys(t), IsSupersetOf({"pid", "tid", "comm", "state", "since_ms", "waiting_for", "donation"}));
  EXPECT_EQ(t["since_ms"], 12.5);
  EXPECT_EQ(t["donation"]["effective"], true);
  EXPECT_EQ(t["donation"]["reason"], "none");
  const json& wait = t["waiting_for"][0];
  EXPECT_THAT(keys(wait), IsSupersetOf({"resource", "kind", "call", "providers"}));
  EXPECT_EQ(wait["kind"], "socket");
  const json& provider = wait["providers"][0];
  EXPECT_THAT(keys(provider),
              IsSupersetOf({"pid", "tid", "comm", "confidence", "favoured", "evidence", "waiting_for"}));
  EXPECT_EQ(provider["favoured"], true);
  const json& inner = provider["waiting_for"][0];
  EXPECT_EQ(inner["resource"], "flock:fe:00:77:exclusive");
  EXPECT_EQ(inner["providers"][0]["evidence"], "owner");
}

TEST(Json, AnIneffectiveDonationNamesItsReason) {
  FakeBackend backend;
  const json why = json::parse(why_json(*backend.why(FakeBackend::job_pid)));
  EXPECT_EQ(why["threads"][0]["donation"]["effective"], false);
  EXPECT_EQ(why["threads"][0]["donation"]["reason"], "autogroup");
}

TEST(Json, GraphHasTheContractsFields) {
  FakeBackend backend;
  const json graph = json::parse(graph_json(backend.graph()));
  EXPECT_EQ(graph["nodes"][1], (json{{"id", "r1"}, {"type", "resource"}, {"label", "socket:12345"}}));
  EXPECT_EQ(graph["edges"][1], (json{{"from", "t203"}, {"to", "r1"}, {"type", "provides"}, {"confidence", 21.0}}));
}

TEST(Json, AnEventIsOneLineAndItsOwnFieldsHideNothing) {
  EventView event = FakeBackend::donation_begun();
  event.fields["comm"] = "forged";
  event.fields["note"] = "two\nlines";
  const std::string line = event_json(event);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const json e = json::parse(line);
  EXPECT_EQ(e["time"], 1700000000.25);
  EXPECT_EQ(e["comm"], "server");
  EXPECT_EQ(e["rt_priority"], 49);
  EXPECT_EQ(e["resource"], "socket:12345");
}

TEST(Json, ANameThatIsNotUtf8IsReplacedNotRefused) {
  FakeBackend backend;
  backend.comm = "a\xff\x01\"b";
  const json ps = json::parse(threads_json(backend.threads()));
  EXPECT_EQ(ps["threads"][0]["comm"], "a\xEF\xBF\xBD\x01\"b");
  EXPECT_EQ(valid_utf8("x\xC3y"), "x\xEF\xBF\xBDy");
}

}  // namespace
}  // namespace swapd::bus
