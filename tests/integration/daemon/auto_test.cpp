// Automatic limits on real programs: they come where the protected ones lack what they need, and go with these
// (decide/shaping/auto_limit.h has how they are found; `swapbench tap-stream` has figures).
#include "shaping_session.h"

namespace swapd::test {
namespace {

class Automatic : public ShapingSession {
 protected:
  [[nodiscard]] nlohmann::json automatic() const { return shown("greedy")["auto"]; }
  [[nodiscard]] bool limited() const { return automatic()["limit"].is_number(); }
  pid_t reads(const std::string& class_name, const std::string& name) {
    return start(class_name, name, {"read", "1048576", "100000000x", session->path("data"), "direct"});
  }
};

// More than any disk has: so that it is missed, whatever the others do.
TEST_P(Automatic, LimitsComeWithTheNeedAndGoWithIt) {
  begin("[class.stream]\n[class.greedy.io]\nshaped = true\n");
  must({"class", "set", "greedy", "--protects", "stream", "--need-rate", "1TiB", "--least", "32MiB"});
  EXPECT_EQ(automatic()["state"], "off");
  const pid_t greedy = reads("greedy", "greedy-says");
  const pid_t stream = reads("stream", "stream-says");
  ASSERT_TRUE(eventually([&] { return limited(); })) << automatic().dump();
  EXPECT_TRUE(eventually([&] { return delayed(greedy); }));
  EXPECT_FALSE(delayed(stream));
  session->kill(stream, SIGTERM);
  EXPECT_EQ(session->wait(stream), 0);
  EXPECT_TRUE(eventually([&] { return !limited(); })) << automatic().dump();
  EXPECT_TRUE(eventually([&] { return !delayed(greedy); }));
  session->kill(greedy, SIGTERM);
  EXPECT_EQ(session->wait(greedy), 0);
  EXPECT_EQ(answer("greedy-says").errors, 0);
}

// It is lowered until it can be no lower; where that does not help, either, it is given up for a while, and that is
// said.
TEST_P(Automatic, ALimitThatDoesNotHelpIsGivenUp) {
  begin("[class.stream]\n[class.greedy.io]\nshaped = true\n");
  must({"class", "set", "greedy", "--protects", "stream", "--need-rate", "1TiB", "--least", "64MiB"});
  const pid_t greedy = reads("greedy", "greedy-says"), stream = reads("stream", "stream-says");
  EXPECT_TRUE(eventually([&] { return automatic()["limit"] == 64 * mib; }, std::chrono::seconds(60)));
  EXPECT_TRUE(eventually([&] { return automatic()["in_vain"] == true; }, std::chrono::seconds(60)))
      << automatic().dump();
  EXPECT_FALSE(limited());
  for (const pid_t pid : {greedy, stream}) session->kill(pid, SIGTERM);
  for (const pid_t pid : {greedy, stream}) EXPECT_EQ(session->wait(pid), 0);
}

TEST_P(Automatic, NoneIsLeftWhereNobodyIsProtectedAnyMore) {
  begin("[class.stream]\n[class.greedy.io.auto]\nprotects = \"stream\"\nrate = \"1TiB\"\n");
  const pid_t greedy = reads("greedy", "greedy-says"), stream = reads("stream", "stream-says");
  ASSERT_TRUE(eventually([&] { return limited(); })) << automatic().dump();
  must({"class", "set", "greedy", "--protects", "none"});
  EXPECT_TRUE(automatic().is_null());
  EXPECT_TRUE(eventually([&] { return !delayed(greedy); }));
  for (const pid_t pid : {greedy, stream}) session->kill(pid, SIGTERM);
  for (const pid_t pid : {greedy, stream}) EXPECT_EQ(session->wait(pid), 0);
}

TEST_P(Automatic, WhoIsSetLimitsSoIsKeptThroughARestart) {
  begin("[class.stream]\n");
  must({"class", "create", "greedy", "--protects", "stream", "--need-wait", "30"});
  must({"class", "create", "other", "--protects", "greedy"});
  const Output refused = session->ctl({"class", "remove", "greedy"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("class 'other' protects class 'greedy'"), std::string::npos) << refused.err;
  const Output unknown = session->ctl({"class", "set", "greedy", "--protects", "steam"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("did you mean 'stream'"), std::string::npos) << unknown.err;
  must({"restart"});
  ASSERT_TRUE(eventually([&] { return session->ctl({"status"}).status == 0; }));
  EXPECT_EQ(automatic()["protects"], "stream");
  EXPECT_EQ(automatic()["need_wait_percent"], 30);
}

INSTANTIATE_TEST_SUITE_P(observers, Automatic, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
