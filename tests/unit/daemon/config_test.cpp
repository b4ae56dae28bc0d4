#include "config.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <sys/syscall.h>

namespace swapd::daemon {
namespace {

policy::Policy policy_of(const std::string& text) {
  auto parsed = policy::parse(text, "test.toml");
  EXPECT_TRUE(parsed.ok()) << parsed.error().text();
  return std::move(parsed).value();
}

TEST(Config, a_kind_may_have_constants_of_its_own) {
  const auto options = engine_options(
      policy_of("[model]\nquantum_ms = 100\n[model.sysv-sem]\nquantum_ms = 200\nfeedback = \"paper\"\n"), {});
  const auto& sem = options.model.kinds.at(static_cast<std::size_t>(ResourceKind::sysv_sem));
  const auto& pipe = options.model.kinds.at(static_cast<std::size_t>(ResourceKind::pipe));
  EXPECT_EQ(sem.quantum, std::chrono::milliseconds(200));
  EXPECT_EQ(sem.feedback, model::Feedback::paper);
  EXPECT_EQ(pipe.quantum, std::chrono::milliseconds(100));
  EXPECT_EQ(pipe.feedback, model::Feedback::wait);
}

TEST(Config, the_budget_is_that_of_the_policy) {
  EXPECT_DOUBLE_EQ(engine_options(policy_of(""), {}).budget.share, 0.05);
  EXPECT_DOUBLE_EQ(engine_options(policy_of("observe.budget = 0.25"), {}).budget.share, 0.25);
}

TEST(Config, classes_say_what_holds_for_their_members) {
  const auto options = engine_options(policy_of(R"(
[class.default]
linger_ms = 5
[class.a]
strict = true
ceiling_share = 0.5
weight_above = 300
[class.a.model]
quantum_ms = 7
[class.b]
realtime = false
group_action = false
[donation]
ceiling_share = 1
)"),
                                      {});
  EXPECT_EQ(options.classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.model.of(1, ResourceKind::pipe).quantum, std::chrono::milliseconds(7));
  EXPECT_EQ(options.model.of(2, ResourceKind::pipe).quantum, std::chrono::milliseconds(20));
  EXPECT_TRUE(options.donation.rules.of(1).lending.strict);
  EXPECT_EQ(options.donation.rules.of(1).weight_above, 300U);
  EXPECT_EQ(options.donation.rules.of(2).weight_above, 0U);
  EXPECT_TRUE(options.donation.rules.look_at_weights()) << "one class does";
  EXPECT_FALSE(options.donation.rules.of(2).lending.realtime_allowed);
  EXPECT_EQ(options.donation.rules.of(0).linger, std::chrono::milliseconds(5));
  EXPECT_EQ(options.donation.rules.of(1).linger, std::chrono::milliseconds(2))
      << "what [class.default] says is its own";
  EXPECT_EQ(options.decisions.budgets.of(1).share, 0.5);
  EXPECT_FALSE(options.actuate.rules.of(2).group_action);
  EXPECT_TRUE(options.decisions.budgets.limits_requesters()) << "one class has one";
}

TEST(Config, classes_say_whether_they_are_coscheduled) {
  using Mode = decide::CoschedulingConfig::Mode;
  const auto options = engine_options(policy_of(R"(
[class.a]
coschedule = true
[class.b]
[class.c]
coschedule = false
)"),
                                      {});
  EXPECT_EQ(options.coscheduling.mode, Mode::automatic);
  EXPECT_EQ(options.coscheduling.of(1), Mode::on);
  EXPECT_EQ(options.coscheduling.of(2), Mode::automatic);
  EXPECT_EQ(options.coscheduling.of(3), Mode::off);
  EXPECT_GE(options.coscheduling.cpus, 1);
  EXPECT_TRUE(options.coscheduling.realtime);
}

TEST(Config, display_servers_stay_in_memory) {
  const auto options = engine_options(policy_of(R"(
[memory]
on = true
quantum_ms = 20000
[class.a]
[class.b.levels]
display = true
)"),
                                      {});
  EXPECT_TRUE(options.memory.on);
  EXPECT_EQ(options.memory.quantum, std::chrono::seconds(20));
  EXPECT_EQ(options.memory.stay, (std::vector{false, false, true}));
  EXPECT_GE(options.memory_manager.away.stale, std::chrono::seconds(3));
}

TEST(Config, classes_say_whether_they_have_levels) {
  const auto options = engine_options(policy_of(R"(
[class.a.levels]
on = true
nice = 2
[class.b]
[class.c.levels]
display = true
)"),
                                      {});
  EXPECT_EQ(options.levels.common, decide::ClassLevels{}) << "they are off by themselves";
  EXPECT_EQ(options.levels.of(1), (decide::ClassLevels{.nice = 2}));
  EXPECT_EQ(options.levels.of(2), decide::ClassLevels{});
  EXPECT_EQ(options.levels.of(3), (decide::ClassLevels{.display = true}));
  EXPECT_EQ(options.levels.share, 0.5 * options.coscheduling.cpus);
  EXPECT_EQ(engine_options(policy_of("[class.default.levels]\non = true\n"), {}).levels.common,
            (decide::ClassLevels{.nice = 5}));
}

TEST(Config, coscheduling_can_be_switched_off_and_does_without_real_time) {
  using Mode = decide::CoschedulingConfig::Mode;
  const auto off = engine_options(policy_of("class.default.coschedule = false"), {});
  EXPECT_EQ(off.coscheduling.mode, Mode::off);
  EXPECT_FALSE(off.coscheduling.wanted());
  EXPECT_FALSE(engine_options(policy_of("donation.realtime = false"), {}).coscheduling.realtime);
}

TEST(Config, history_says_what_is_trapped) {
  const auto holders = engine_options(policy_of(""), {});
  const auto calls = engine_options(policy_of("[observe]\nhistory = \"calls\"\n"), {});
  const auto traps = [](const Engine::Options& o, int nr) {
    return std::ranges::find(o.observe.trapped, nr) != o.observe.trapped.end();
  };
  EXPECT_TRUE(traps(holders, SYS_semop));
  EXPECT_FALSE(traps(holders, SYS_read));
  EXPECT_TRUE(traps(calls, SYS_read));
  for (const int never : {SYS_close, SYS_clone, SYS_execve, SYS_kill, SYS_exit, SYS_mmap, SYS_rt_sigreturn})
    EXPECT_FALSE(traps(calls, never)) << never;
}

TEST(Config, an_unreadable_file_is_one_line) {
  const auto missing = load_policy("/no/such/policy.toml");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().context(), "/no/such/policy.toml: cannot be read: No such file or directory");
}

TEST(Config, a_directory_is_no_policy) {
  const auto loaded = load_policy("/");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().context(), "/: cannot be read: Is a directory");
}

// /etc's file stands for /usr/lib's of the same name; each file overrides what those before it say.
TEST(Config, files_of_folders_in_the_order_of_their_names) {
  std::string root = testing::TempDir() + "swapd-policies-XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root + name).parent_path());
    std::ofstream(root + name) << text;
  };
  const PolicyPlaces places{.folders = {root + "/lib", root + "/etc", root + "/none"}, .file = root + "/swapd.toml"};
  EXPECT_TRUE(policy_files("", places)->empty());
  EXPECT_EQ(load_policy("", places)->policy, policy::Policy{});
  write("/lib/10-a.toml", "[model]\nconfidence = 1\n");
  write("/lib/20-b.toml", "[model]\nconfidence = 2\nproviders = 2\n[class.b]\n");
  write("/etc/20-b.toml", "[model]\nconfidence = 3\n[class.site]\n");
  write("/etc/05-c.toml", "[model]\nquantum_ms = 5\nconfidence = 5\n");
  write("/etc/30-not-one.conf", "?");
  write("/etc/.#40-being-edited.toml", "?");
  const auto loaded = load_policy("", places);
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_EQ(loaded->policy.model.confidence, 3);
  EXPECT_EQ(loaded->policy.model.providers, 20) << "/etc's 20-b.toml stands for /usr/lib's";
  EXPECT_EQ(loaded->policy.model.quantum, std::chrono::milliseconds(5));
  EXPECT_TRUE(loaded->policy.classes.contains("site"));
  const auto where = [&](const std::string& key) {
    return std::ranges::find(loaded->settings, key, &policy::Setting::key)->where;
  };
  EXPECT_EQ(where("confidence"), root + "/etc/20-b.toml:2");
  EXPECT_EQ(where("providers"), "built-in");
  write("/swapd.toml", "[match.x]\ncomm = \"x\"\nclass = \"site\"\n[model]\nconfidence = 9\n");
  EXPECT_EQ(load_policy("", places)->policy.model.confidence, 9);
  EXPECT_EQ(policy_files(root + "/lib/10-a.toml", places)->size(), 1U);
  write("/etc/06-bad.toml", "[modl]\n");
  const auto bad = load_policy("", places);
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().context().starts_with(root + "/etc/06-bad.toml:1: ")) << bad.error().context();
  const auto unreadable = load_policy("", {.folders = {root + "/swapd.toml"}, .file = ""});
  ASSERT_FALSE(unreadable);
  EXPECT_EQ(unreadable.error().context(), root + "/swapd.toml: cannot be read: Not a directory");
  std::filesystem::remove_all(root);
}

TEST(Config, a_mistake_names_file_and_line) {
  const std::string file = std::filesystem::temp_directory_path() / "swapd-config-test.toml";
  std::ofstream(file) << "[model]\nquantm_ms = 3\n";
  const auto wrong = load_policy(file);
  std::filesystem::remove(file);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().context().find(file + ":2"), std::string::npos) << wrong.error().context();
  EXPECT_NE(wrong.error().context().find("quantum_ms"), std::string::npos) << wrong.error().context();
}

}  // namespace
}  // namespace swapd::daemon
