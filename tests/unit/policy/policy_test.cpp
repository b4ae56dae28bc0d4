// The shape of a policy: tables, inheritance between [model] and [model.KIND], overlays, and refusals.
#include "policy/policy.h"

#include <chrono>

#include "unit/policy/support.h"

namespace swapd::policy::test {
namespace {

using namespace std::chrono_literals;

TEST(Policy, AnEmptyTextIsTheDefaults) {
  EXPECT_EQ(accepted(""), Policy{});
  EXPECT_TRUE(accepted("").classes.contains("default"));
}

TEST(Policy, EveryKeyIsRead) {
  const Policy p = accepted(R"(
[model]
confidence = 7
quantum_ms = 2.5
providers = 3
feedback = "paper"
counts = false
[donation]
strict = true
ceiling = 42
ceiling_share = 0.5
ceiling_window_ms = 100
cross_user = true
group_action = false
weight_above = 100
linger_ms = 0
[observe]
history = "calls"
watch = "poll"
poll_period_ms = 0.5
trap_kill = true
budget = 0.25
guard_stale_ms = 300
[class.batch-jobs]
description = "at night"
)");
  EXPECT_EQ(p.model, (ModelRules{7, 2500us, 3, Feedback::paper, false}));
  EXPECT_TRUE(p.donation.strict);
  EXPECT_EQ(p.donation.ceiling, 42);
  EXPECT_DOUBLE_EQ(p.donation.ceiling_share, 0.5);
  EXPECT_EQ(p.donation.ceiling_window, 100ms);
  EXPECT_TRUE(p.donation.cross_user);
  EXPECT_FALSE(p.donation.group_action);
  EXPECT_EQ(p.donation.weight_above, 100U);
  EXPECT_EQ(p.donation.linger, 0ms);
  EXPECT_EQ(p.observe.history, History::calls);
  EXPECT_EQ(p.observe.watch, WatchMethod::poll);
  EXPECT_EQ(p.observe.poll_period, 500us);
  EXPECT_TRUE(p.observe.trap_kill);
  EXPECT_DOUBLE_EQ(p.observe.budget, 0.25);
  EXPECT_EQ(p.observe.guard_stale, 300ms);
  EXPECT_EQ(p.classes.at("batch-jobs").description, "at night");
  EXPECT_TRUE(p.classes.contains("default"));
  EXPECT_FALSE(accepted("donation.realtime = false").donation.realtime);
}

TEST(Policy, AKindFollowsModelInWhatItLeavesOut) {
  const Policy p = accepted("[model.sysv-sem]\nquantum_ms = 200\n[model]\nconfidence = 10\n");
  const ModelRules sem = model_of(p, "default", ResourceKind::sysv_sem);
  EXPECT_EQ(sem.quantum, 200ms);
  EXPECT_EQ(sem.confidence, 10) << "[model] counts wherever it stands";
}

TEST(Policy, EveryKindMayHaveATableOfItsOwn) {
  for (std::size_t k = 0; k < resource_kinds; ++k) {
    const auto kind = static_cast<ResourceKind>(k);
    const std::string text = "[model." + std::string(name(kind)) + "]\ncounts = false\n";
    if (kind == ResourceKind::unknown)
      EXPECT_NE(refusal(text), "(accepted)") << "nobody provides an unknown resource";
    else
      EXPECT_FALSE(model_of(accepted(text), "default", kind).counts) << text;
  }
}

TEST(Policy, ALaterTextOverridesOnlyWhatItNames) {
  const Policy site =
      accepted("[model]\nconfidence = 9\n[model.socket]\nquantum_ms = 5\n[class.web]\ndescription = 'w'\n");
  const Policy p =
      accepted("[model]\nconfidence = 11\n[model.socket]\nproviders = 2\n[donation]\nstrict = true\n", site);
  const ModelRules socket = model_of(p, "default", ResourceKind::socket);
  EXPECT_EQ(socket.quantum, 5ms) << "from the first text";
  EXPECT_EQ(socket.providers, 2) << "from the second";
  EXPECT_EQ(socket.confidence, 11) << "what no table of the kind says follows [model], also when that changes later";
  EXPECT_TRUE(p.donation.strict);
  EXPECT_EQ(p.classes.at("web").description, "w");
}

TEST(Policy, AClassSaysWhatHoldsForItsMembers) {
  const Policy p = accepted(R"(
[donation]
linger_ms = 3
[model.socket]
quantum_ms = 30
[class.desktop]
strict = true
ceiling = 20
[class.desktop.model]
quantum_ms = 5
[class.desktop.model.pipe]
counts = false
)");
  const DonationPolicy desktop = donation_of(p, "desktop");
  EXPECT_TRUE(desktop.strict);
  EXPECT_EQ(desktop.ceiling, 20);
  EXPECT_EQ(desktop.linger, 3ms) << "what the class does not say is said of all";
  EXPECT_FALSE(donation_of(p, "default").strict) << "and what it says holds for nobody else";
  EXPECT_EQ(donation_of(p, "nobody's"), p.donation);

  EXPECT_EQ(model_of(p, "default", ResourceKind::socket).quantum, 30ms);
  EXPECT_EQ(model_of(p, "desktop", ResourceKind::socket).quantum, 5ms) << "the class counts more than the kind";
  EXPECT_TRUE(model_of(p, "desktop", ResourceKind::socket).counts);
  EXPECT_FALSE(model_of(p, "desktop", ResourceKind::pipe).counts);
  EXPECT_EQ(model_of(p, "desktop", ResourceKind::pipe).quantum, 5ms);
}

TEST(Policy, AClassSaysWhetherItIsCoscheduled) {
  const auto chosen = [](const std::string& value) {
    return accepted("[class.mpi]\ncoschedule = " + value + "\n").classes.at("mpi").coschedule;
  };
  EXPECT_EQ(chosen("\"auto\""), Coschedule::automatic);
  EXPECT_EQ(chosen("true"), Coschedule::on);
  EXPECT_EQ(chosen("false"), Coschedule::off);
  EXPECT_EQ(accepted("[class.mpi]\n").classes.at("mpi").coschedule, Coschedule::automatic) << "if it says nothing";
  EXPECT_EQ(accepted("").classes.at("default").coschedule, Coschedule::automatic);
  EXPECT_EQ(accepted("class.default.coschedule = false").classes.at("default").coschedule, Coschedule::off);
}

TEST(Policy, SaysWhetherMemoryIsKeptForWhatMatters) {
  EXPECT_EQ(accepted("").memory, MemoryPolicy{}) << "off by itself";
  EXPECT_EQ(accepted("[memory]\non = true\nquantum_ms = 20000\nstays_ms = 0\n").memory,
            (MemoryPolicy{.on = true, .quantum = 20s, .stays = 0s}));
  for (const char* wrong : {"quantum_ms = 999", "stays_ms = -1", "on = \"yes\"", "victims = 3"})
    EXPECT_NE(refusal("[memory]\n" + std::string(wrong) + "\n"), "(accepted)") << wrong;
}

TEST(Policy, AClassSaysWhetherItHasLevels) {
  const auto levels = [](const std::string& text) {
    return accepted("[class.shell]\n" + text).classes.at("shell").levels;
  };
  EXPECT_EQ(levels(""), (LevelRules{.on = false, .nice = 5, .display = false}));
  EXPECT_EQ(levels("[class.shell.levels]\non = true\n"), (LevelRules{.on = true}));
  EXPECT_EQ(levels("[class.shell.levels]\non = true\nnice = 2\ndisplay = true\n"),
            (LevelRules{.on = true, .nice = 2, .display = true}));
  for (const char* wrong : {"nice = 0", "nice = 6", "nice = -5", "on = 1", "display = \"yes\"", "share = 0.5"})
    EXPECT_NE(refusal("[class.shell.levels]\n" + std::string(wrong) + "\n"), "(accepted)") << wrong;
  EXPECT_NE(refusal("[class.shell]\nlevels = true\n"), "(accepted)");
}

TEST(Policy, ALaterTextMayChangeThat) {
  const Policy site = accepted("[class.mpi]\ncoschedule = true\n");
  EXPECT_EQ(accepted("[class.mpi]\ndescription = 'm'\n", site).classes.at("mpi").coschedule, Coschedule::on);
  EXPECT_EQ(accepted("[class.mpi]\ncoschedule = \"auto\"\n", site).classes.at("mpi").coschedule, Coschedule::automatic);
}

TEST(Policy, CoscheduleHasThreeValues) {
  const auto refused = [](const std::string& value) { return refusal("[class.mpi]\ncoschedule = " + value + "\n"); };
  for (const char* value : {"\"on\"", "\"yes\"", "\"AUTO\"", "1", "0.5", "[]", "{ on = true }"}) {
    const std::string said = refused(value);
    EXPECT_TRUE(said.starts_with("p.toml:2: 'coschedule' in [class.mpi] must be \"auto\", true or false, not "))
        << said;
  }
  EXPECT_NE(refusal("coschedule = true\n"), "(accepted)");
  EXPECT_NE(refusal("[donation]\ncoschedule = true\n"), "(accepted)");
}

TEST(Policy, TheKernelsWorkCountsOnlyWhereThisVeryKindIsNamed) {
  const auto counts = [](const std::string& text, std::string_view of) {
    return model_of(accepted(text), of, ResourceKind::kernel_work).counts;
  };
  EXPECT_FALSE(counts("[model]\ncounts = true\n", "default"));
  EXPECT_FALSE(counts("[class.a.model]\ncounts = true\n", "a"));
  EXPECT_FALSE(counts("[model.kernel-work]\ncounts = true\n[class.a.model]\ncounts = false\n", "a"))
      << "a class may say that nothing counts";
  EXPECT_TRUE(counts("[class.a.model.kernel-work]\ncounts = true\n", "a"));
  EXPECT_FALSE(counts("[class.a.model.kernel-work]\ncounts = true\n", "default"));
}

TEST(Policy, WhatAClassSaysMustFitWhatIsSaidOfAll) {
  EXPECT_EQ(refusal("[donation]\nrealtime = false\n[class.a]\nopen = true\nstrict = true\n"),
            "p.toml:5: 'strict = true' lends real-time priorities, which 'realtime = false' forbids: both hold for "
            "[class.a]");
  EXPECT_EQ(refusal("\n[donation]\nrealtime = false\n", accepted("[class.a]\nstrict = true\n")),
            "p.toml:3: 'strict = true' lends real-time priorities, which 'realtime = false' forbids: both hold for "
            "[class.a]")
      << "the line is of this text, also where the class is of another";
  EXPECT_TRUE(donation_of(accepted("[donation]\nstrict = true\n[class.a]\nstrict = false\nrealtime = false\n"), "a")
                  .
                  operator==(DonationPolicy{.realtime = false}));
}

TEST(Policy, AClassThatCrossesUsersSaysWhoMayJoinIt) {
  EXPECT_EQ(refusal("[class.db]\ncross_user = true\n"),
            "p.toml:2: 'cross_user' in [class.db] trusts whoever is in it: say 'open = false' besides, so that only "
            "root and the policy's rules put programs there, or 'open = true'");
  EXPECT_EQ(accepted("[class.db]\ncross_user = true\nopen = false\n").classes.at("db").open, false);
}

TEST(Policy, TablesOfAClassAreReadAsStrictlyAsOthers) {
  EXPECT_EQ(refusal("[class.a.model]\nquantm_ms = 3\n"),
            "p.toml:2: unknown key 'quantm_ms' in [class.a.model]; did you mean 'quantum_ms'?");
  EXPECT_EQ(refusal("[class.a.model.sockt]\nquantum_ms = 3\n"),
            "p.toml:1: unknown resource kind 'sockt' in [class.a.model.sockt]; did you mean 'socket'?");
  EXPECT_EQ(refusal("[class.a.modl]\nquantum_ms = 3\n"),
            "p.toml:1: unknown key 'modl' in [class.a]; did you mean 'model'?");
  EXPECT_EQ(refusal("[class.a]\nmodel = 3\n"), "p.toml:2: 'model' in [class.a] must be a table, not 3");
}

TEST(Policy, NothingIsHalfApplied) {
  const Policy site = accepted("[model]\nconfidence = 9\n");
  const Policy before = site;
  EXPECT_NE(refusal("[model]\nconfidence = 11\n[donation]\nstrikt = true\n", site), "(accepted)");
  EXPECT_EQ(site, before);
}

TEST(Policy, TheFirstMistakeFromTheTopIsTheOneReported) {
  EXPECT_EQ(refusal("[observe]\nwathc = 'perf'\n[model]\nconfidnce = 1\n"),
            "p.toml:2: unknown key 'wathc' in [observe]; did you mean 'watch'?");
}

TEST(Policy, UnknownTablesKindsAndWordsNameTheNearest) {
  EXPECT_EQ(refusal("\n[modle]\n"), "p.toml:2: unknown table [modle]; did you mean [model]?");
  EXPECT_EQ(refusal("[modle.socket]\n"), "p.toml:1: unknown table [modle]; did you mean [model]?");
  EXPECT_EQ(refusal("[model.sokcet]\ncounts = true\n"),
            "p.toml:1: unknown resource kind 'sokcet' in [model.sokcet]; did you mean 'socket'?");
  EXPECT_EQ(refusal("[model.sysv_sem]\n"),
            "p.toml:1: unknown resource kind 'sysv_sem' in [model.sysv_sem]; did you mean 'sysv-sem'?");
  EXPECT_EQ(refusal("[model.pipe]\nquantm_ms = 3\n"),
            "p.toml:2: unknown key 'quantm_ms' in [model.pipe]; did you mean 'quantum_ms'?");
  EXPECT_EQ(refusal("[model]\nfeedback = 'papr'\n"),
            "p.toml:2: 'feedback' in [model] cannot be \"papr\"; did you mean \"paper\"?");
  EXPECT_EQ(refusal("[model]\nfeedback = true\n"),
            "p.toml:2: 'feedback' in [model] must be \"wait\" or \"paper\", not true");
  EXPECT_EQ(refusal("[class.web]\ndescribtion = 'x'\n"),
            "p.toml:2: unknown key 'describtion' in [class.web]; did you mean 'description'?");
}

TEST(Policy, NamesOfProtectedPrograms) {
  EXPECT_EQ(accepted("[observe]\nprotected = ['sshd', 'postgres']\n").observe.never,
            (std::vector<std::string>{"sshd", "postgres"}));
  EXPECT_EQ(refusal("[observe]\nprotected = 'sshd'\n"),
            "p.toml:2: 'protected' in [observe] must be a list of names, not \"sshd\"");
  for (const char* wrong : {"['']", "[3]", "['a name that is too long']", "[['sshd']]"})
    EXPECT_TRUE(refusal(std::string("[observe]\nprotected = ") + wrong + "\n")
                    .starts_with("p.toml:2: 'protected' in [observe] must be a list of names of 1 to 15 bytes, not "))
        << wrong;
}

TEST(Policy, KeysInTheWrongPlaceAreToldWhereTheyBelong) {
  EXPECT_EQ(refusal("confidence = 3\n"),
            "p.toml:1: key 'confidence' stands before the first table; write it under [model], [donation], [observe], "
            "[quota], [shaping], [memory], [class.NAME] or [match.NAME]");
  EXPECT_EQ(refusal("model = 3\n"), "p.toml:1: [model] must be a table, not 3");
  EXPECT_EQ(refusal("[model]\nsocket = 3\n"), "p.toml:2: [model.socket] must be a table, not 3");
  EXPECT_EQ(refusal("[model.confidence]\n"),
            "p.toml:1: 'confidence' in [model] must be a whole number from 1 to 1000, not a table");
  EXPECT_EQ(refusal("[class]\ndescription = 'x'\n"),
            "p.toml:2: 'description' stands in [class] itself; write [class.NAME]");
  EXPECT_EQ(refusal("[[class.web]]\n"), "p.toml:1: 'web' stands in [class] itself; write [class.NAME]");
  EXPECT_EQ(refusal("[class.'a/b']\n"),
            "p.toml:1: the name in [class.a/b] must be 1 to 64 letters, digits, '-' or '_'");
}

TEST(Policy, StrictWithoutRealTimeIsAContradiction) {
  const std::string line = "'strict = true' in [donation] lends real-time priorities, which 'realtime = false' forbids";
  EXPECT_EQ(refusal("[donation]\nrealtime = false\nstrict = true\n"), "p.toml:2: " + line);
  const Policy strict = accepted("[donation]\nstrict = true\n");
  EXPECT_EQ(refusal("[donation]\nceiling = 3\nrealtime = false\n", strict), "p.toml:3: " + line)
      << "an overlay cannot make one either";
}

TEST(Policy, BrokenTomlIsOneLineToo) {
  EXPECT_TRUE(refusal("[model]\nconfidence = = 3\n").starts_with("p.toml:2: "));
  EXPECT_TRUE(refusal("[model\n").starts_with("p.toml:1: "));
  EXPECT_TRUE(refusal("[model]\ncounts = true\ncounts = true\n").starts_with("p.toml:3: "));
  EXPECT_TRUE(refusal("\xff\xfe").starts_with("p.toml:1: "));
  EXPECT_EQ(refusal("[model]\n\"a\\nb\" = 1\n").find('\n'), std::string::npos)
      << "a newline in a key stays off the line";
  EXPECT_EQ(refusal(std::string(9U << 20, '#')), "p.toml:1: larger than 8 MiB: not a policy");
}

}  // namespace
}  // namespace swapd::policy::test
