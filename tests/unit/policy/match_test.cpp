// The programs that a policy's rules match: globs, the units and containers of cgroups, and rules in their order.
#include "policy/match.h"

#include <gmock/gmock.h>

#include "unit/policy/support.h"

namespace swapd::policy::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Glob, IsComparedWithTheWholeText) {
  EXPECT_TRUE(fits("postgres", "postgres"));
  EXPECT_FALSE(fits("postgres", "postgresql"));
  EXPECT_FALSE(fits("postgres", "xpostgres"));
  EXPECT_TRUE(fits("", ""));
  EXPECT_FALSE(fits("", "a"));
}

TEST(Glob, AStarIsAnyBytesAndAQuestionMarkIsOne) {
  for (const char* glob : {"*", "/usr/*", "*/postgres", "/usr/lib/postgresql/*/bin/postgres", "/usr/*/15/*/postgre?",
                           "**postgres**", "*s", "/*/*/*/*/*/*"})
    EXPECT_TRUE(fits(glob, "/usr/lib/postgresql/15/bin/postgres")) << glob;
  for (const char* glob : {"?", "/usr/?", "*/postgre", "/usr/lib/mysql/*", "*postgres?", "/*/*/*/*/*/*/*"})
    EXPECT_FALSE(fits(glob, "/usr/lib/postgresql/15/bin/postgres")) << glob;
  EXPECT_TRUE(fits("*", ""));
  EXPECT_FALSE(fits("?", ""));
  EXPECT_TRUE(fits("*ab*ab", "abaabab")) << "a first try that does not fit is given up";
  EXPECT_TRUE(fits("a[b]", "a[b]")) << "brackets are themselves";
}

TEST(Match, ANameIsAtMostFifteenBytesAsTheKernelKeepsIt) {
  EXPECT_THAT(accepted("[match.a]\ncomm = [\"123456789012345\", \"12345678901234*?*\"]\n").rules.front().rule.comm,
              testing::SizeIs(2));
  const std::string wrong = refusal("[match.a]\ncomm = [\"cron\", \"gnome-session-binary*\"]\n");
  EXPECT_THAT(wrong, testing::HasSubstr("2"));
  EXPECT_THAT(wrong, testing::HasSubstr("write 'gnome-session-b'"));
}

TEST(Glob, OfManyStarsIsStillQuick) {
  const std::string text(10'000, 'a');
  std::string glob;
  for (int i = 0; i < 60; ++i) glob += "*a";
  EXPECT_FALSE(fits(glob + "b", text));
}

TEST(Cgroup, HasTheUnitsThatSystemdMade) {
  EXPECT_THAT(units_of("/system.slice/postgresql@15-main.service"),
              ElementsAre("system.slice", "postgresql@15-main.service"));
  EXPECT_THAT(units_of("/system.slice/docker.service/x"), ElementsAre("system.slice", "docker.service"));
  EXPECT_THAT(units_of("/"), IsEmpty());
  EXPECT_THAT(units_of("/.service/batch/a.service.d"), IsEmpty());
}

// What a user's own manager, a container or mkdir(1) in a delegated group calls something is no unit of the system.
TEST(Cgroup, NamesThatAnybodyMayGiveAreNoUnits) {
  EXPECT_THAT(units_of("/user.slice/user-1000.slice/user@1000.service/app.slice/postgresql.service"),
              ElementsAre("user.slice", "user-1000.slice", "user@1000.service"));
  EXPECT_THAT(units_of("/lxc.payload.web/system.slice/cron.service"), IsEmpty());
  EXPECT_THAT(units_of("/docker/4f5e/system.slice/cron.service"), IsEmpty());
  EXPECT_EQ(container_of("/user.slice/user-1000.slice/user@1000.service/docker-4f5e.scope"), "");
  EXPECT_EQ(container_of("/system.slice/docker-4f5e.scope/docker-0000.scope"), "4f5e");
}

TEST(Cgroup, HasTheContainerThatItsManagerNames) {
  EXPECT_EQ(container_of("/system.slice/docker-4f5e.scope"), "4f5e");
  EXPECT_EQ(container_of("/docker/4f5e"), "4f5e");
  EXPECT_EQ(container_of("/machine.slice/libpod-77.scope/container"), "77");
  EXPECT_EQ(container_of("/libpod_parent/libpod-77"), "77");
  EXPECT_EQ(container_of("/kubepods.slice/kubepods-pod1.slice/cri-containerd-ab12.scope"), "ab12");
  EXPECT_EQ(container_of("/lxc.payload.web/system.slice/cron.service"), "web");
  EXPECT_EQ(container_of("/lxc/web"), "web");
  EXPECT_EQ(container_of("/machine.slice/systemd-nspawn@debian.service/payload"), "debian");
  EXPECT_EQ(container_of("/system.slice/cron.service"), "");
  EXPECT_EQ(container_of("/system.slice/docker.service"), "") << "docker itself is in none";
  EXPECT_EQ(container_of(""), "");
}

const Program postgres{.exe = "/usr/lib/postgresql/15/bin/postgres",
                       .comm = "postgres",
                       .cmdline = "postgres: main: writer",
                       .user = "postgres",
                       .uid = 107,
                       .cgroup = "/system.slice/postgresql@15-main.service"};

TEST(Match, EachPatternMustFitByOneOfItsGlobs) {
  const auto name = [](const std::string& keys, const Program& program) {
    const RuleTable table(accepted("[match.x]\n" + keys).rules);
    const NamedRule* rule = table.rule_for(program);
    return std::string(rule == nullptr ? "" : rule->name);
  };
  EXPECT_EQ(name("comm = \"postgres\"", postgres), "x");
  EXPECT_EQ(name("exe = [\"/usr/sbin/mysqld\", \"*/bin/postgres\"]", postgres), "x");
  EXPECT_EQ(name("comm = \"postgres\"\nuser = \"root\"", postgres), "");
  EXPECT_EQ(name("user = \"postgres\"", postgres), "x");
  EXPECT_EQ(name("user = \"107\"", postgres), "x");
  EXPECT_EQ(name("unit = \"postgresql@*.service\"", postgres), "x");
  EXPECT_EQ(name("unit = \"system.slice\"", postgres), "x") << "a slice is a unit too";
  EXPECT_EQ(name("unit = \"postgresql\"", postgres), "");
  EXPECT_EQ(name("cgroup = \"/system.slice/*\"", postgres), "x");
  EXPECT_EQ(name("cmdline = \"* writer\"", postgres), "x");
  EXPECT_EQ(name("container = \"*\"", postgres), "") << "it is in none";
  EXPECT_EQ(name("container = \"4f*\"", {.comm = "sh", .cgroup = "/docker/4f5e"}), "x");
  const Program named{.comm = "sh", .cgroup = "/docker/4f5e", .container_names = {"web", "web-1"}};
  EXPECT_EQ(name("container = \"web\"", named), "x");
  EXPECT_EQ(name("container = [\"4f5e\", \"!web-?\"]", named), "") << "one of its names is excluded";
}

TEST(Match, TheFirstRuleCounts) {
  const Policy policy = accepted(R"(
[class.database]
[match.writer]
cmdline = "*writer*"
manage = false
[match.database]
comm = "postgres"
class = "database"
nice = -5
)");
  const RuleTable table(policy.rules);
  EXPECT_EQ(table.rule_for(postgres)->name, "writer");
  Program backend = postgres;
  backend.cmdline = "postgres: main: joe shop";
  const NamedRule* rule = table.rule_for(backend);
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->rule.class_name, "database");
  EXPECT_EQ(rule->rule.base->nice, -5);
  EXPECT_EQ(table.rule_for({.comm = "sh"}), nullptr);
}

TEST(Match, TheFirstRuleCountsWhetherItIsForNamesOrNot) {
  const RuleTable table(accepted(R"(
[match.names]
comm = ["sh", "make"]
[match.root]
user = "root"
[match.more-names]
comm = ["cc1", "sh"]
[match.globs]
comm = "m*"
)")
                            .rules);
  const auto name = [&](const Program& program) {
    const NamedRule* rule = table.rule_for(program);
    return std::string(rule == nullptr ? "" : rule->name);
  };
  EXPECT_EQ(name({.comm = "make", .user = "root"}), "names");
  EXPECT_EQ(name({.comm = "cc1", .user = "root"}), "root");
  EXPECT_EQ(name({.comm = "cc1", .user = "joe"}), "more-names");
  EXPECT_EQ(name({.comm = "sh", .user = "joe"}), "names");
  EXPECT_EQ(name({.comm = "mv", .user = "joe"}), "globs");
  EXPECT_EQ(name({.comm = "ls", .user = "joe"}), "");
}

TEST(Match, NoNegativePatternMayFit) {
  const auto takes = [](const std::string& keys, const Program& program) {
    return RuleTable(accepted("[match.x]\n" + keys).rules).rule_for(program) != nullptr;
  };
  EXPECT_TRUE(takes("comm = [\"post*\", \"!postmaster\"]", postgres));
  EXPECT_FALSE(takes("comm = [\"post*\", \"!postgres\"]", postgres));
  EXPECT_TRUE(takes("comm = \"!sh\"", postgres)) << "all but these";
  EXPECT_FALSE(takes("comm = \"!post*\"", postgres));
  EXPECT_FALSE(takes("unit = \"!system.slice\"", postgres)) << "none of its units may fit";
  EXPECT_FALSE(takes("user = \"!107\"", postgres));
}

TEST(Match, KnowsWhatAProgramDescendsFrom) {
  const auto takes = [](const std::string& keys, const std::vector<std::string>& ancestors) {
    return RuleTable(accepted("[match.x]\n" + keys).rules).rule_for({.comm = "game", .ancestors = ancestors}) !=
           nullptr;
  };
  EXPECT_TRUE(takes("parent = \"reaper\"", {"reaper", "steam", "systemd"}));
  EXPECT_FALSE(takes("parent = \"steam\"", {"reaper", "steam", "systemd"}));
  EXPECT_TRUE(takes("descends = \"steam\"", {"reaper", "steam", "systemd"}));
  EXPECT_FALSE(takes("descends = \"lutris\"", {"reaper", "steam", "systemd"}));
  EXPECT_FALSE(takes("parent = \"steam\"", {}));
  EXPECT_FALSE(takes("comm = \"game\"\ndescends = \"!steam\"", {"reaper", "steam", "systemd"}));
}

TEST(Match, SaysWhatElseAProgramHas) {
  const MatchRule rule = accepted(R"([match.x]
comm = "backup"
sched = "batch"
nice = 5
slice_ms = 20
io_class = "best-effort"
io_priority = 7
oom_score_adj = 500
keep_own = true
)")
                             .rules[0]
                             .rule;
  EXPECT_EQ(rule.sched, SchedPolicy::batch);
  EXPECT_EQ(rule.base->nice, 5);
  EXPECT_EQ(rule.slice, std::chrono::milliseconds(20));
  EXPECT_EQ(rule.io_class, IoClass::best_effort);
  EXPECT_EQ(rule.io_priority, 7);
  EXPECT_EQ(rule.oom_score_adj, 500);
  EXPECT_TRUE(rule.keep_own);
}

TEST(Match, SaysHowImportantAProgramIs) {
  const auto base = [](const std::string& key) {
    return accepted("[match.x]\ncomm = \"x\"\n" + key).rules[0].rule.base;
  };
  EXPECT_EQ(base(""), std::nullopt);
  EXPECT_EQ(base("nice = 0")->nice, 0);
  EXPECT_EQ(base("fifo = 50")->policy, SchedPolicy::fifo);
  EXPECT_EQ(base("fifo = 50")->rt_priority, 50);
  EXPECT_EQ(base("rr = 1")->policy, SchedPolicy::rr);
  EXPECT_EQ(refusal("[match.x]\ncomm = \"x\"\nfifo = 5\nnice = 1\n"),
            "p.toml:1: [match.x] has more than one of 'nice', 'fifo' and 'rr'");
}

TEST(Match, ALaterFileChangesWhatItNamesAndKeepsTheOrder) {
  const Policy first = accepted("[match.a]\ncomm = \"a\"\nnice = -5\n[match.b]\ncomm = \"*\"\n");
  const Policy then = accepted("[match.c]\ncomm = \"a\"\n[match.a]\nfifo = 1\n", first);
  ASSERT_EQ(then.rules.size(), 3U);
  EXPECT_EQ(then.rules[0].name, "a");
  EXPECT_THAT(then.rules[0].rule.comm, ElementsAre("a"));
  EXPECT_EQ(then.rules[0].rule.base->policy, SchedPolicy::fifo);
  EXPECT_EQ(then.rules[2].name, "c");
}

TEST(Match, MistakesNameTheirLine) {
  const auto starts = [](const std::string& text, const std::string& start) {
    const std::string said = refusal(text);
    EXPECT_TRUE(said.starts_with(start)) << said;
  };
  starts("[match.x]\nnice = 1\n", "p.toml:1: [match.x] would fit every program; give it 'exe'");
  starts("[match.x]\ncomm = \"a\"\nfifo = 5\nsched = \"batch\"\n",
         "p.toml:1: [match.x] has a real-time priority and 'sched'");
  starts("[match.x]\ncomm = \"a\"\nio_class = \"idle\"\nio_priority = 3\n",
         "p.toml:1: [match.x] has 'io_priority', which the I/O class 'idle' does not");
  starts("[match.x]\ncomm = \"a\"\nsched = \"fifo\"\n", "p.toml:3: 'sched' in [match.x]");
  starts("[match.x]\nparent = \"gnome-session-binary\"\n", "p.toml:2: 'parent' in [match.x] is compared with a name");
  starts("[match.x]\ncom = \"a\"\n", "p.toml:2: unknown key 'com' in [match.x]; did you mean 'comm'?");
  starts("[match.x]\ncomm = 7\n", "p.toml:2: 'comm' in [match.x] must be a text of 1 to 200 bytes, or a list");
  starts("[match.x]\ncomm = []\n", "p.toml:2: 'comm' in [match.x] must be");
  starts("[match.x]\ncomm = [\"a\", \"\"]\n", "p.toml:2: 'comm' in [match.x] must be");
  starts("[match]\ncomm = \"a\"\n", "p.toml:2: 'comm' stands in [match] itself; write [match.NAME]");
  starts("[match.\"a b\"]\ncomm = \"a\"\n", "p.toml:1: the name in [match.a b] must be 1 to 64 letters");
  starts("[match.x]\ncomm = \"a\"\nclass = \"databse\"\n[class.database]\n",
         "p.toml:3: no class 'databse' for [match.x]; write a [class.databse]; did you mean 'database'?");
  EXPECT_EQ(accepted("[match.x]\ncomm = \"a\"\nclass = \"late\"\n[class.late]\n").rules[0].rule.class_name, "late");
}

}  // namespace
}  // namespace swapd::policy::test
