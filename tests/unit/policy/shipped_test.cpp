// The shipped policies say what the code does, every key of them misspelt is refused with the right advice, and the
// corpora hold.
#include <algorithm>
#include <chrono>
#include <sstream>

#include "policy/match.h"
#include "unit/policy/support.h"

namespace swapd::policy::test {
namespace {

using namespace std::chrono_literals;

std::string shipped(const char* file) { return contents(source_dir() / "policies" / file); }

TEST(ShippedPolicies, DefaultsAreTheDefaults) {
  const Result<Policy> p = parse(shipped("00-defaults.toml"), "00-defaults.toml");
  ASSERT_TRUE(p) << p.error().context();
  Policy expected;
  expected.classes["default"].description = "programs without a class of their own";
  expected.classes["default"].open = true;
  EXPECT_EQ(*p, expected);
}

TEST(ShippedPolicies, ThePapersConstants) {  // [SWAP04 §3.1, §4]
  const Result<Policy> p = parse(shipped("paper-2004.toml"), "paper-2004.toml");
  ASSERT_TRUE(p) << p.error().context();
  EXPECT_EQ(p->model, (ModelRules{20, 20ms, 20, Feedback::paper, true}));
  EXPECT_EQ(p->observe.history, History::calls);
  EXPECT_EQ(p->donation.linger, 0ms);
}

// All of them together, as on a machine that has them all.
Policy all_shipped() {
  Policy p;
  for (const auto& file : toml_files(source_dir() / "policies")) {
    if (file.filename() == "paper-2004.toml") continue;  // for comparison only
    auto next = parse(contents(file), file.filename().string(), p);
    EXPECT_TRUE(next) << next.error().context();
    if (next) p = std::move(next).value();
  }
  return p;
}

// The rule that takes a program in: its class and its nice value, or that it is left alone.
std::string rule_of(const Policy& p, const Program& program) {
  const RuleTable table(p.rules);
  const NamedRule* found = table.rule_for(program);
  if (found == nullptr) return "none";
  if (!found->rule.manage) return "left alone";
  return found->rule.class_name + (found->rule.base ? " " + std::to_string(found->rule.base->nice) : "");
}

TEST(ShippedPolicies, WhatKeepsTheMachineGoingIsLeftAlone) {
  const Policy p = all_shipped();
  EXPECT_EQ(p.rules.front().name, "protected") << "before all others, whatever these say";
  for (const char* comm : {"sshd", "systemd-logind", "polkitd", "watchdog"})
    EXPECT_EQ(rule_of(p, {.comm = comm, .cgroup = "/user.slice/user-7.slice/user@7.service/app.slice/app-x"}),
              "left alone")
        << comm;
  EXPECT_NE(std::ranges::find(p.observe.never, "sshd"), p.observe.never.end());
}

TEST(ShippedPolicies, Desktop) {
  const Policy p = all_shipped();
  EXPECT_EQ(rule_of(p, {.comm = "Xorg"}), "display");
  EXPECT_EQ(rule_of(p, {.comm = "pipewire"}), "sound");
  EXPECT_EQ(rule_of(p, {.comm = "firefox-esr",
                        .cgroup = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox.scope"}),
            "application");
  EXPECT_EQ(rule_of(p, {.comm = "bash", .cgroup = "/user.slice/user-1000.slice/session-3.scope"}), "application")
      << "at a terminal";
  EXPECT_TRUE(p.classes.at("application").levels.on);
  EXPECT_TRUE(p.classes.at("display").levels.display);
  EXPECT_TRUE(donation_of(p, "sound").strict);
  EXPECT_EQ(donation_of(p, "display").ceiling, 10);
  EXPECT_FALSE(donation_of(p, "application").realtime);
}

TEST(ShippedPolicies, BuildHost) {
  const Policy p = all_shipped();
  EXPECT_EQ(rule_of(p, {.comm = "cc1plus"}), "build 10");
  EXPECT_FALSE(donation_of(p, "build").realtime);
  EXPECT_EQ(model_of(p, "build", ResourceKind::child_exit).quantum, 200ms);
  EXPECT_TRUE(model_of(p, "default", ResourceKind::pipe).counts);
}

TEST(ShippedPolicies, Database) {
  const Policy p = all_shipped();
  EXPECT_EQ(rule_of(p, {.comm = "postgres", .user = "postgres"}), "database");
  EXPECT_EQ(rule_of(p, {.comm = "postgres", .user = "mallory"}), "none") << "a name is nothing to trust";
  EXPECT_EQ(rule_of(p, {.comm = "pg_dump"}), "database-upkeep 10");
  EXPECT_TRUE(donation_of(p, "database").cross_user);
  EXPECT_EQ(p.classes.at("database").open, false);
  EXPECT_FALSE(donation_of(p, "database-upkeep").cross_user);
}

TEST(ShippedPolicies, BatchIo) {
  const Policy p = all_shipped();
  EXPECT_EQ(rule_of(p, {.comm = "rsync"}), "batch-io 19");
  EXPECT_FALSE(donation_of(p, "batch-io").realtime);
}

TEST(ShippedPolicies, ThinClient) {
  const Policy p = all_shipped();
  EXPECT_EQ(rule_of(p, {.comm = "Xvnc"}), "session");
  EXPECT_EQ(rule_of(p, {.comm = "mplayer"}), "session");
  EXPECT_EQ(rule_of(p, {.comm = "Xorg"}), "display") << "a screen of the machine itself is another policy's";
  EXPECT_EQ(p.classes.at("session").open, false);
}

TEST(ShippedPolicies, EveryOneStandsBesideAStrictSite) {
  const auto strict = parse("[donation]\nstrict = true\n", "site.toml");
  ASSERT_TRUE(strict);
  for (const auto& file : toml_files(source_dir() / "policies")) {
    if (file.filename() == "00-defaults.toml") continue;
    const auto p = parse(contents(file), file.filename().string(), *strict);
    EXPECT_TRUE(p) << p.error().context();
  }
}

TEST(ShippedPolicies, EveryOneParsesAlone) {
  const auto files = toml_files(source_dir() / "policies");
  EXPECT_GE(files.size(), 7U);
  for (const auto& file : files) {
    const Result<Policy> p = parse(contents(file), file.filename().string());
    EXPECT_TRUE(p) << p.error().context();
  }
}

// A text by lines, and one line of it that sets a key.
struct ShippedSetting {
  std::size_t number = 0;  // from 1
  std::string table, key, rest;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<ShippedSetting> settings_of(const std::vector<std::string>& lines) {
  std::vector<ShippedSetting> found;
  std::string table;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.starts_with('[')) table = line.substr(1, line.find(']') - 1);
    const std::size_t equals = line.find(" = ");
    if (!line.starts_with('#') && equals != std::string::npos)
      found.push_back({i + 1, table, line.substr(0, equals), line.substr(equals)});
  }
  return found;
}

std::string with_line(std::vector<std::string> lines, std::size_t number, const std::string& line) {
  lines[number - 1] = line;
  std::string text;
  for (const std::string& each : lines) text += each + "\n";
  return text;
}

// One slip of each sort at every letter.
std::vector<std::string> misspellings(const std::string& word) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < word.size(); ++i) {
    all.push_back(std::string(word).erase(i, 1));
    all.push_back(std::string(word).insert(i, 1, 'x'));
    if (i > 0 && word[i] != word[i - 1]) {
      all.push_back(word);
      std::swap(all.back()[i], all.back()[i - 1]);
    }
  }
  return all;
}

TEST(ShippedPolicies, EveryKeyMisspeltIsRefusedWithItsLineAndTheRightKey) {
  EXPECT_EQ(settings_of(lines_of(shipped("00-defaults.toml"))).size(), 44U);
  for (const auto& file : toml_files(source_dir() / "policies")) {
    const std::vector<std::string> lines = lines_of(contents(file));
    const std::vector<ShippedSetting> settings = settings_of(lines);
    EXPECT_FALSE(settings.empty()) << file;
    for (const ShippedSetting& s : settings) {
      for (const std::string& wrong : misspellings(s.key)) {
        EXPECT_EQ(refusal(with_line(lines, s.number, wrong + s.rest)), "p.toml:" + std::to_string(s.number) +
                                                                           ": unknown key '" + wrong + "' in [" +
                                                                           s.table + "]; did you mean '" + s.key + "'?")
            << file;
      }
    }
  }
}

TEST(ShippedPolicies, EveryTableMisspeltIsRefusedWithItsLineAndTheRightTable) {
  for (const std::string table : {"model", "donation", "observe", "shaping", "class"})
    for (const std::string& wrong : misspellings(table))
      EXPECT_EQ(refusal("\n\n[" + wrong + ".x]\n"),
                "p.toml:3: unknown table [" + wrong + "]; did you mean [" + table + "]?");
}

TEST(ShippedPolicies, EveryKindMisspeltIsRefusedWithItsLineAndTheRightKind) {
  for (std::size_t k = 0; k + 1 < resource_kinds; ++k) {
    const std::string kind(name(static_cast<ResourceKind>(k)));
    const std::string wrong = kind + "x";
    EXPECT_EQ(refusal("\n[model." + wrong + "]\n"),
              "p.toml:2: unknown resource kind '" + wrong + "' in [model." + wrong + "]; did you mean '" + kind + "'?");
  }
}

// The list that the parser itself gives for a key like nothing else is the list of the defaults file.
TEST(ShippedPolicies, DefaultsNameEveryKey) {
  const std::vector<ShippedSetting> settings = settings_of(lines_of(shipped("00-defaults.toml")));
  for (const std::string table : {"model", "donation", "observe", "class.default"}) {
    std::string expected;
    const bool is_class = table.starts_with("class.");
    for (const ShippedSetting& s : settings)
      if (s.table == table) expected += (expected.empty() ? "" : ", ") + s.key;
    // A class may say what [donation] says, and has a table of its own for what [model] says.
    for (const ShippedSetting& s : settings)
      if (is_class && s.table == "donation") expected += ", " + s.key;
    if (is_class) expected += ", model, io, levels";
    EXPECT_EQ(refusal("[" + table + "]\nzzzzzzzzzzzzzzzzz = 1\n"),
              "p.toml:2: unknown key 'zzzzzzzzzzzzzzzzz' in [" + table + "]; valid: " + expected);
  }
}

TEST(PolicyCorpus, GoodOnesParse) {
  const auto files = toml_files(source_dir() / "tests/unit/policy/good");
  EXPECT_GE(files.size(), 5U);
  for (const auto& file : files) {
    const Result<Policy> p = parse(contents(file), file.filename().string());
    EXPECT_TRUE(p) << p.error().context();
  }
}

// The first line of a bad one says what must be told: "# expect: LINE: text".
TEST(PolicyCorpus, BadOnesAreRefusedAsTheySay) {
  const auto files = toml_files(source_dir() / "tests/unit/policy/bad");
  EXPECT_GE(files.size(), 10U);
  for (const auto& file : files) {
    const std::string text = contents(file);
    const std::string head = "# expect: ";
    ASSERT_TRUE(text.starts_with(head)) << file;
    EXPECT_EQ(refusal(text), "p.toml:" + text.substr(head.size(), text.find('\n') - head.size())) << file;
  }
}

}  // namespace
}  // namespace swapd::policy::test
