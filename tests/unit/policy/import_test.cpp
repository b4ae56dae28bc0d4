// Other tools' configurations as policies: what a program gets there it gets here, and what cannot be said is listed.
#include "policy/import/imported.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/import/kdl.h"
#include "policy/match.h"

namespace swapd::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string text(Tool tool, const std::vector<SourceFile>& files) {
  const auto imported = import_from(tool, files);
  return imported ? policy_text(*imported, tool, "/etc/there") : imported.error().context();
}

// The policy that is made, as swapd reads it.
class ImportedPolicy {
 public:
  ImportedPolicy(Tool tool, const std::vector<SourceFile>& files) : text_(text(tool, files)), table_(rules(text_)) {}
  [[nodiscard]] const std::string& text() const { return text_; }
  // The rule of the program; one that fits none has none of its own.
  [[nodiscard]] MatchRule rule(const Program& program) const {
    const NamedRule* found = table_.rule_for(program);
    return found == nullptr ? MatchRule{.class_name = "none"} : found->rule;
  }
  [[nodiscard]] MatchRule of(const std::string& comm) const { return rule({.comm = comm}); }

 private:
  static std::string text(Tool tool, const std::vector<SourceFile>& files) { return policy::text(tool, files); }
  static std::vector<NamedRule> rules(const std::string& text) {
    auto policy = parse(text, "imported.toml");
    EXPECT_TRUE(policy) << policy.error().context() << "\n" << text;
    return policy ? policy->rules : std::vector<NamedRule>{};
  }
  std::string text_;
  RuleTable table_;
};

std::vector<std::string> unsaid(Tool tool, const std::vector<SourceFile>& files) {
  std::vector<std::string> out;
  const auto imported = import_from(tool, files);
  for (const Unsaid& one : imported->unsaid)
    out.push_back(one.place.file + ":" + std::to_string(one.place.line) + ": " + one.what);
  return out;
}

// --- ananicy

const SourceFile types{"00-types.types", R"(# Type: Game
{ "type": "Game", "nice": -5, "ioclass": "best-effort", "sched": "normal" }
{ "type": "BG_CPUIO", "nice": 16, "ioclass": "idle", "sched": "idle" }
{ "type": "Chat", "nice": -3, "ioclass": "best-effort", "ionice": 7 }
{ "type": "OOM_KILL", "oom_score_adj": 1000 }
)"};

TEST(ImportAnanicy, AProgramHasWhatItsTypeSays) {
  const ImportedPolicy policy(Tool::ananicy, {types, {"a.rules", R"({ "name": "portal2_linux", "type": "Game" }
{ "name": "cc1", "type": "BG_CPUIO" }
{ "name": "bees", "type": "OOM_KILL" })"}});
  EXPECT_EQ(policy.of("portal2_linux").class_name, "Game");
  EXPECT_EQ(policy.of("portal2_linux").base->nice, -5);
  EXPECT_EQ(policy.of("portal2_linux").io_class, IoClass::best_effort);
  EXPECT_EQ(policy.of("cc1").sched, SchedPolicy::idle);
  EXPECT_EQ(policy.of("cc1").io_class, IoClass::idle);
  EXPECT_FALSE(policy.of("cc1").base) << "SCHED_IDLE has no nice value";
  EXPECT_EQ(policy.of("bees").oom_score_adj, 1000);
}

TEST(ImportAnanicy, ItsOwnValuesCountMoreThanItsType) {
  const ImportedPolicy policy(
      Tool::ananicy,
      {types, {"a.rules", R"({ "name": "linphon", "type": "Chat", "nice": -15, "ioclass": "realtime" })"}});
  EXPECT_EQ(policy.of("linphon").base->nice, -15);
  EXPECT_EQ(policy.of("linphon").io_class, IoClass::realtime);
  EXPECT_EQ(policy.of("linphon").io_priority, 7);
}

TEST(ImportAnanicy, ARuleNeedsNoType) {
  const ImportedPolicy policy(Tool::ananicy, {{"a.rules", R"({ "name": "plasmashell", "nice": -6 })"}});
  EXPECT_EQ(policy.of("plasmashell").base->nice, -6);
  EXPECT_EQ(policy.of("plasmashell").class_name, "default");
}

TEST(ImportAnanicy, ANameIsCutAsTheKernelCutsIt) {
  const ImportedPolicy policy(Tool::ananicy,
                              {types, {"a.rules", R"({ "name": "Cyberpunk2077.exe", "type": "Game" })"}});
  EXPECT_EQ(policy.of("Cyberpunk2077.e").class_name, "Game");
}

TEST(ImportAnanicy, ACharacterThatIsCutIsAnyBytes) {
  const ImportedPolicy policy(
      Tool::ananicy, {types, {"a.rules", "{ \"name\": \"12345678901234\u6e38\u620f.exe\", \"type\": \"Game\" }"}});
  EXPECT_EQ(policy.of("12345678901234\xe6").class_name, "Game");
}

TEST(ImportAnanicy, ANameIsNoPattern) {
  const ImportedPolicy policy(Tool::ananicy, {types, {"a.rules", R"({ "name": "!game*", "type": "Game" })"}});
  EXPECT_EQ(policy.of("!game*").class_name, "Game");
  EXPECT_EQ(policy.of("sh").class_name, "none");
}

TEST(ImportAnanicy, BesideEachNameStandsWhereItComesFrom) {
  EXPECT_THAT(
      text(Tool::ananicy, {types, {"games/p.rules", "\n# a game\n{ \"name\": \"pingus\", \"type\": \"Game\" }\n"}}),
      HasSubstr("  \"pingus\",  # games/p.rules:3\n"));
}

TEST(ImportAnanicy, TheLastRuleOfANameCounts) {
  const std::vector<SourceFile> files = {
      types, {"a.rules", R"({ "name": "sh", "type": "Game" })"}, {"b.rules", R"({ "name": "sh", "type": "Chat" })"}};
  EXPECT_EQ(ImportedPolicy(Tool::ananicy, files).of("sh").class_name, "Chat");
  EXPECT_THAT(unsaid(Tool::ananicy, files), ElementsAre("a.rules:1: sh"));
}

TEST(ImportAnanicy, ANameThatIsSaidTwiceInTheSameWayIsNotListed) {
  EXPECT_THAT(
      unsaid(
          Tool::ananicy,
          {types, {"a.rules", "{ \"name\": \"sh\", \"type\": \"Game\" }\n{ \"name\": \"sh\", \"type\": \"Game\" }"}}),
      IsEmpty());
}

TEST(ImportAnanicy, WhatAPolicyCannotSayIsListed) {
  EXPECT_THAT(unsaid(Tool::ananicy, {types, {"a.rules", R"({ "cgroup": "cpu80", "CPUQuota": 80 }
{ "name": "cc1", "type": "BG_CPUIO", "cgroup": "cpu80" }
{ "name": "sh", "type": "Nothing" }
no object
{ "name": "vi", "nice": 40 }
{ "name": "ed", "nice": 4, "latency_nice": -5 })"}}),
              ElementsAre("a.rules:1: control group cpu80", "a.rules:4: 'no object'", "a.rules:2: cc1: cgroup",
                          "a.rules:3: sh", "a.rules:5: vi: nice", "a.rules:5: vi", "a.rules:6: ed: latency_nice"));
}

TEST(ImportAnanicy, WhatFollowsAnObjectIsLeftOut) {
  const ImportedPolicy policy(Tool::ananicy, {types, {"a.rules", R"({ "name": "drafters", "type": "Game" }+)"}});
  EXPECT_EQ(policy.of("drafters").class_name, "Game");
}

TEST(ImportAnanicy, ManyNamesAreSeveralRules) {
  std::string rules;
  for (int i = 0; i < 250; ++i) rules += "{ \"name\": \"game" + std::to_string(i) + "\", \"type\": \"Game\" }\n";
  const ImportedPolicy policy(Tool::ananicy, {types, {"a.rules", rules}});
  for (const char* name : {"game0", "game99", "game100", "game249"})
    EXPECT_EQ(policy.of(name).class_name, "Game") << name;
}

// No policy can hold them.
TEST(Import, BytesThatAreNoTextAreShownAsQuestionMarks) {
  const ImportedPolicy policy(Tool::ananicy, {types, {"a.rules", "{ \"name\": \"caf\xe9\", \"type\": \"Game\" }"}});
  EXPECT_THAT(policy.text(), HasSubstr("caf?"));
}

TEST(Import, APatternThatNoPolicyCanHoldIsLeftOut) {
  const std::string longer(201, 'u');
  const std::vector<SourceFile> files = {{"cgrules.conf", longer + ":cp * low\nalice:mv * low\n"}};
  const ImportedPolicy policy(Tool::cgrules, files);
  EXPECT_THAT(policy.text(), HasSubstr("a pattern has 1 to 200 bytes"));
  EXPECT_THAT(policy.text(), HasSubstr("\"alice\""));
  EXPECT_THAT(policy.text(), Not(HasSubstr("\"cp\""))) << "without its user the rule would mean all users";
}

TEST(Import, AValueThatNoPolicyCanHoldIsLeftOut) {
  const ImportedPolicy policy(Tool::system76,
                              {{"config.kdl", "assignments {\n audio sched=(fifo)0 nice=-21 { jackd }\n}"}});
  EXPECT_THAT(policy.text(), HasSubstr("# config.kdl:2: real-time priority 0: it is not in 1…99"));
  EXPECT_FALSE(policy.of("jackd").base) << "neither this nor its nice value of -21";
}

TEST(Import, AFaultIsOneLine) {
  EXPECT_EQ(text(Tool::system76, {{"config.kdl", "version \"2.0\"=\n"}}), "config.kdl:1: '?' is out of place");
}

// --- system76

TEST(ImportSystem76, AProfileHasProgramsByNameAndByPath) {
  const ImportedPolicy policy(Tool::system76, {{"config.kdl", R"(version "2.0"
process-scheduler enable=true {
    assignments {
        // sound
        sound-server nice=-15 io=(realtime)0 {
            "/usr/bin/pipewire"
            "7z"
        }
        batch nice=19 sched="idle" io="idle" { make; cc1 }
    }
})"}});
  const MatchRule sound = policy.rule({.exe = "/usr/bin/pipewire", .comm = "pipewire"});
  EXPECT_EQ(sound.class_name, "sound-server");
  EXPECT_EQ(sound.base->nice, -15);
  EXPECT_EQ(sound.io_class, IoClass::realtime);
  EXPECT_EQ(sound.io_priority, 0);
  EXPECT_EQ(policy.of("7z").class_name, "sound-server");
  EXPECT_EQ(policy.of("cc1").sched, SchedPolicy::idle);
}

TEST(ImportSystem76, ALaterFileAddsToAProfile) {
  const ImportedPolicy policy(Tool::system76, {{"config.kdl", "assignments {\n games nice=-5 io=(best-effort)0\n}"},
                                               {"pop_os.kdl", "assignments {\n games {\n steam\n }\n}"}});
  EXPECT_EQ(policy.of("steam").base->nice, -5);
}

TEST(ImportSystem76, ConditionsMustAllFit) {
  const ImportedPolicy policy(Tool::system76, {{"config.kdl", R"(assignments {
  session-services nice=9 {
    include cgroup="/user.slice/*.service" parent="systemd"
    exclude cgroup="*app-dbus*"
  }
})"}});
  const Program service{.comm = "tracker", .cgroup = "/user.slice/u/t.service", .ancestors = {"systemd"}};
  EXPECT_EQ(policy.rule(service).base->nice, 9);
  Program other = service;
  other.ancestors = {"bash", "systemd"};
  EXPECT_EQ(policy.rule(other).class_name, "none");
  other = service;
  other.cgroup = "/user.slice/app-dbus/t.service";
  EXPECT_EQ(policy.rule(other).class_name, "none");
}

TEST(ImportSystem76, APatternIsCutAsTheKernelCutsNames) {
  const ImportedPolicy policy(
      Tool::system76, {{"config.kdl", "assignments {\n slow nice=9 { include name=\"update-initramfs*\" }\n}"}});
  EXPECT_EQ(policy.of("update-initramf").base->nice, 9);
}

TEST(ImportSystem76, AnExceptionIsLeftAloneWhateverElseIsSaid) {
  const ImportedPolicy policy(Tool::system76, {{"config.kdl", R"(
assignments {
  batch nice=19 { make }
}
exceptions {
  include descends="nice"
  chrt
})"}});
  EXPECT_TRUE(policy.of("make").manage);
  EXPECT_FALSE(policy.rule({.comm = "make", .ancestors = {"nice", "bash"}}).manage);
  EXPECT_FALSE(policy.of("chrt").manage);
}

TEST(ImportSystem76, ANameCountsBeforeACondition) {
  const ImportedPolicy policy(Tool::system76, {{"config.kdl", R"(assignments {
  system-services nice=12 { include cgroup="/system.slice/*" }
  batch nice=19 { updatedb }
})"}});
  EXPECT_EQ(policy.rule({.comm = "updatedb", .cgroup = "/system.slice/x.service"}).base->nice, 19);
}

TEST(ImportSystem76, ARealTimeClassHasItsPriority) {
  const ImportedPolicy policy(
      Tool::system76, {{"config.kdl", "assignments {\n audio sched=(fifo)20 { jackd }\n low sched=(rr)99 { x }\n}"}});
  EXPECT_EQ(policy.of("jackd").base->policy, SchedPolicy::fifo);
  EXPECT_EQ(policy.of("jackd").base->rt_priority, 20);
  EXPECT_EQ(policy.of("x").base->rt_priority, 92) << "swapd itself is above that";
}

TEST(ImportSystem76, WhatAPolicyCannotSayIsListed) {
  EXPECT_THAT(
      unsaid(Tool::system76, {{"config.kdl", R"(autogroup-enabled false
cfs-profiles enable=true { default latency=6; }
assignments {
  foreground nice=0
  games nice=-50 { steam tty="x"; include tty="x" }
})"}}),
      ElementsAre("config.kdl:1: autogroup-enabled", "config.kdl:2: cfs-profiles", "config.kdl:4: profile foreground",
                  "config.kdl:5: nice=-50", "config.kdl:5: steam", "config.kdl:5: include"));
}

TEST(ImportSystem76, AMistakeIsOneLineWithItsPlace) {
  EXPECT_EQ(text(Tool::system76, {{"config.kdl", "assignments {\n  games {\n"}}), "config.kdl:3: 'games' has no '}'");
  EXPECT_EQ(text(Tool::system76, {{"config.kdl", "a\nb \"open\n"}}), "config.kdl:2: this string has no end");
  EXPECT_EQ(text(Tool::system76, {{"config.kdl", "a }\n"}}), "config.kdl:1: there is a '}' too many");
}

TEST(Kdl, ANodeHasArgumentsPropertiesAndChildren) {
  const auto nodes = parse_kdl(R"(/* a
comment */ node (u8)1 "two\n" key=r#"a"b"# /-gone=1 \
  last=true { inner; /-left { out } }
/-whole node)",
                               "x.kdl");
  ASSERT_TRUE(nodes) << nodes.error().context();
  ASSERT_THAT(*nodes, SizeIs(1));
  const KdlNode& node = nodes->front();
  EXPECT_EQ(node.line, 2U);
  ASSERT_THAT(node.arguments, SizeIs(2));
  EXPECT_EQ(node.arguments[0].type, "u8");
  EXPECT_EQ(node.arguments[1].text, "two\n");
  EXPECT_EQ(node.property("key")->text, "a\"b");
  EXPECT_EQ(node.property("gone"), nullptr);
  EXPECT_EQ(node.property("last")->text, "true");
  ASSERT_THAT(node.children, SizeIs(1));
  EXPECT_EQ(node.children[0].name, "inner");
}

// --- gamemode, cgrules

TEST(ImportGamemode, TheProgramsThatItNamesHaveWhatGamesGet) {
  const ImportedPolicy policy(Tool::gamemode, {{"gamemode.ini", R"([general]
renice=10
; a comment
[filter]
whitelist=RiseOfTheTombRaider
blacklist=launcher
[gpu]
gpu_device=0
)"}});
  EXPECT_EQ(policy.of("RiseOfTheTombRa").base->nice, -10);
  EXPECT_EQ(policy.of("RiseOfTheTombRa").io_priority, 0);
  EXPECT_FALSE(policy.of("launcher").manage);
  EXPECT_THAT(policy.text(), HasSubstr("# gamemode.ini:8: gpu.gpu_device: swapd sets priorities alone\n"));
}

TEST(ImportGamemode, AFileThatIsNoneIsOneLine) {
  EXPECT_EQ(text(Tool::gamemode, {{"x.ini", "renice=10\n"}}),
            "x.ini:1: neither a [section] nor 'key=value': not a gamemode.ini");
}

TEST(ImportCgrules, AControlGroupBecomesAClass) {
  const ImportedPolicy policy(Tool::cgrules, {{"cgrules.conf", R"(# user:process controllers destination
alice:postgres  cpu,memory  databases/
bob:/usr/bin/tar  blkio  backup
@students  cpu  students/
*  cpu  rest
)"}});
  EXPECT_EQ(policy.rule({.comm = "postgres", .user = "alice"}).class_name, "databases-");
  EXPECT_EQ(policy.rule({.exe = "/usr/bin/tar", .comm = "tar", .user = "bob"}).class_name, "backup");
  EXPECT_EQ(policy.rule({.comm = "tar", .user = "carol"}).class_name, "rest");
  EXPECT_THAT(policy.text(), HasSubstr("# cgrules.conf:4: @students: a rule names users, not their groups"));
}

TEST(ImportCgrules, AFileThatIsNoneIsOneLine) {
  EXPECT_EQ(text(Tool::cgrules, {{"x.conf", "\nalice\n"}}),
            "x.conf:2: not 'user[:program] controllers destination': not a cgrules.conf");
}

}  // namespace
}  // namespace swapd::policy
