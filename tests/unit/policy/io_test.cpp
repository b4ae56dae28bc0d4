// [class.NAME.io]: limits of disks and network links.
#include <gmock/gmock.h>

#include "unit/policy/support.h"

namespace swapd::policy::test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t mib = 1 << 20;

TEST(PolicyIo, EveryKeyIsRead) {
  const Policy p = accepted(R"(
[class.backup.io]
shaped = true
mode = "device"
inherit = "new"
mapped = "freeze"
favoured_wait = true
[class.backup.io.disk]
both = "20 MiB"
read = 2000
write = "5MB/s"
operations = 100
read_operations = 50
write_operations = 25
burst = "1M"
[class.backup.io.network]
both = "1.5KiB"
[class.backup.io.device."/var"]
write = "2G"
[class.backup.io.device.eth0]
read = "1MiB"
)");
  const IoRules& io = p.classes.at("backup").io;
  EXPECT_TRUE(io.shaped);
  EXPECT_EQ(io.mode, IoMode::device);
  EXPECT_EQ(io.inherit, Inherit::own);
  EXPECT_EQ(io.mapped, Mapped::freeze);
  EXPECT_TRUE(io.favoured_wait);
  EXPECT_EQ(io.disk, (IoLimits{.both = 20 * mib,
                               .read = 2000,
                               .write = 5'000'000,
                               .operations = 100,
                               .read_operations = 50,
                               .write_operations = 25,
                               .burst = mib}));
  EXPECT_EQ(io.network.both, 1536);
  EXPECT_EQ(io.devices.at("/var").write, 2048 * mib);
  EXPECT_EQ(io.devices.at("eth0").read, mib);
  EXPECT_TRUE(io.limits());
  EXPECT_FALSE(p.classes.at("default").io.limits());
  EXPECT_EQ(accepted("[shaping]\nslice_ms = 20\n").shaping.slice, std::chrono::milliseconds(20));
}

TEST(PolicyIo, AutomaticLimits) {
  const Policy p = accepted(R"(
[class.stream]
[class.batch.io.auto]
protects = "stream"
rate = "4 MiB/s"
wait_percent = 30
least = "1 MiB"
)");
  const IoRules& io = p.classes.at("batch").io;
  EXPECT_EQ(io.automatic, (AutoRules{.protects = "stream", .rate = 4 * mib, .wait_percent = 30, .least = mib}));
  EXPECT_TRUE(io.limits()) << "its programs are under a filter from their start";
  EXPECT_EQ(accepted(io_text("batch", io) + "[class.stream]\n").classes.at("batch").io, io);
  const auto none = parse("[class.batch.io.auto]\nprotects = \"none\"\n", "p.toml", p);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->classes.at("batch").io.automatic, AutoRules{}) << "the needs go with who had them";
}

TEST(PolicyIo, AutomaticLimitsThatMakeNoSense) {
  const auto of_auto = [](const std::string& line) { return refusal("[class.s]\n[class.a.io.auto]\n" + line + "\n"); };
  EXPECT_THAT(of_auto("protects = \"z\""), HasSubstr("p.toml:3: no class 'z' to protect for [class.a]"));
  EXPECT_THAT(of_auto("protects = \"a\""), HasSubstr("protects itself"));
  EXPECT_THAT(of_auto("rate = \"1MiB\""), HasSubstr("protects nobody"));
  EXPECT_THAT(of_auto("protects = \"s\"\nwait_percent = 100"), HasSubstr("p.toml:4: "));
  EXPECT_THAT(of_auto("protects = \"s\"\nleast = \"none\""), HasSubstr("must be a size"));
  EXPECT_THAT(of_auto("protect = \"s\""), HasSubstr("protects"));
  EXPECT_THAT(of_auto("least = \"1MiB\""), HasSubstr("protects nobody"));
  EXPECT_THAT(refusal("[class.a.io.auto]\nprotects = \"b\"\n[class.b.io.auto]\nprotects = \"a\"\n"),
              HasSubstr("protects it in turn"));
}

// A later text changes single limits, and takes them away.
TEST(PolicyIo, NoneTakesALimitAway) {
  const Policy first = accepted("[class.a.io.disk]\nread = 5000\nwrite = 6000\noperations = 7\n");
  const auto second =
      parse("[class.a.io.disk]\nread = \"none\"\noperations = \"none\"\nburst = 9000\n", "p.toml", first);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->classes.at("a").io.disk, (IoLimits{.write = 6000, .burst = 9000}));
}

TEST(PolicyIo, MistakesAreSaidWithTheirLine) {
  const auto of_disk = [](const std::string& line) { return refusal("[class.a.io.disk]\n" + line + "\n"); };
  const std::string size = R"(must be a size such as "10 MiB", a number of bytes from 1, or "none", not )";
  EXPECT_EQ(of_disk("both = 0"), "p.toml:2: 'both' in [class.a.io.disk] " + size + "0");
  EXPECT_EQ(of_disk("both = \"fast\""), "p.toml:2: 'both' in [class.a.io.disk] " + size + "\"fast\"");
  for (const char* wrong :
       {"-1", "1.5", "true", "\"\"", "\"10 XB\"", "\"-5M\"", "\"2000T\"", "\"nan\"", "\"1e3\"", "[1]"})
    EXPECT_NE(of_disk(std::string("read = ") + wrong), "(accepted)") << wrong;
  EXPECT_EQ(of_disk("operations = \"1k\""),
            "p.toml:2: 'operations' in [class.a.io.disk] must be a whole number from 1 to 1000000000, or \"none\", not "
            "\"1k\"");
  for (const char* small : {"write = \"10\"", "write = 10"})
    EXPECT_EQ(of_disk(small),
              "p.toml:2: 'write' in [class.a.io.disk] is very small: 10 means 10 bytes a second; write 10MiB, or 10B "
              "if that is what you want");
  EXPECT_THAT(of_disk("burst = 512"), HasSubstr("512 means 512 bytes; write"));
  EXPECT_EQ(of_disk("write = \"10B\""), "(accepted)");
  EXPECT_EQ(of_disk("raed = 1"), "p.toml:2: unknown key 'raed' in [class.a.io.disk]; did you mean 'read'?");
  EXPECT_EQ(refusal("[class.a.io]\nmode = \"devise\"\n"),
            "p.toml:2: 'mode' in [class.a.io] cannot be \"devise\"; did you mean \"device\"?");
  EXPECT_EQ(refusal("[class.a.io.disks]\nread = 1\n"),
            "p.toml:1: unknown key 'disks' in [class.a.io]; did you mean 'disk'?");
  EXPECT_EQ(refusal("[class.a]\nio = 1\n"), "p.toml:2: 'io' in [class.a] must be a table, not 1");
  EXPECT_EQ(refusal("[class.a.io.device.\"no such link, surely\"]\nread = 1\n"),
            "p.toml:1: [class.a.io.device.\"no such link, surely\"] names no device: give an absolute path, "
            "MAJOR:MINOR, or a network link");
  EXPECT_EQ(refusal("[class.a.io.device]\neth0 = 1\n"),
            "p.toml:2: [class.a.io.device.\"eth0\"] must be a table, not 1");
}

// Changes by `swapctl class` are kept as a policy has them.
TEST(PolicyIo, WhatIsWrittenDownReadsTheSame) {
  IoRules rules{
      .shaped = true, .mode = IoMode::device, .inherit = Inherit::own, .mapped = Mapped::freeze, .favoured_wait = true};
  rules.disk = {.both = 7 * mib, .read = 1, .write = 3000, .operations = 5, .read_operations = 6, .burst = 70'000};
  rules.network.write_operations = 9;
  rules.devices["/a \"b\" \\c"].both = 1024;
  rules.devices["8:1"].write = 5;
  const Policy p = accepted(io_text("x-1", rules));
  EXPECT_EQ(p.classes.at("x-1").io, rules);
  EXPECT_EQ(accepted(io_text("y", {})).classes.at("y").io, IoRules{});
}

}  // namespace
}  // namespace swapd::policy::test
