// Programs that install a seccomp listener of their own, of which a program can have only one.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "session.h"

namespace swapd::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class OwnListeners : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "root is needed";
    session.emplace(std::vector<std::string>{"--observe", GetParam()},
                    "[class.free]\n[class.limited.io.disk]\nboth = \"100MiB\"\n");
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  }
  static std::string program(const std::string& form) {
    return std::filesystem::path(PAIR_PROGRAM).parent_path() / ("own_listener_" + form);
  }
  Output run(const std::string& form, std::vector<std::string> options) const {
    options.insert(options.begin(), "run");
    options.insert(options.end(), {"--", program(form)});
    return session->ctl(options);
  }
  [[nodiscard]] std::string warnings() const { return session->json({"status"})["warnings"].dump(); }
  [[nodiscard]] bool filters() const { return GetParam() == std::string("seccomp"); }
  std::optional<Session> session;
};

TEST_P(OwnListeners, InALimitedClassRunWithoutALimitAndAreNamed) {
  const Output ran = run("shown", {"--class", "limited"});
  EXPECT_EQ(ran.status, 0) << "3: EBUSY";
  EXPECT_THAT(ran.err, HasSubstr("seccomp listener of its own"));
  EXPECT_THAT(warnings(), HasSubstr("(own_listener_shown) has a seccomp listener of its own"));
}

TEST_P(OwnListeners, RunWhereNothingLimitsThem) {
  const Output ran = run("shown", {"--class", "free"});
  EXPECT_EQ(ran.status, 0) << "3: EBUSY";
  if (filters()) return;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(warnings(), Not(HasSubstr("own_listener_shown")));
}

TEST_P(OwnListeners, ThatAreNotSeenBeforeAreNamedWhenTheyFail) {
  EXPECT_EQ(run("hidden", {"--class", "limited"}).status, 3);
  EXPECT_TRUE(eventually([&] {
    return warnings().find("(own_listener_hi) asks for a seccomp listener") != std::string::npos;
  })) << warnings();
}

TEST_P(OwnListeners, ThatAreNotSeenBeforeRunWithoutAFilterWhenAsked) {
  EXPECT_EQ(run("hidden", {"--class", "limited", "--no-filter"}).status, 0);
  EXPECT_THAT(warnings(), HasSubstr("(own_listener_hidden) has a seccomp listener of its own"));
}

TEST_P(OwnListeners, ThatAreSeenByMistakeRunWithTheFilterWhenAsked) {
  const Output ran = run("shown", {"--class", "limited", "--filter"});
  EXPECT_EQ(ran.status, 3) << "EBUSY: swapd's is in";
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(run("shown", {"--filter", "--no-filter"}).status, 2);
}

INSTANTIATE_TEST_SUITE_P(Both, OwnListeners, testing::Values("bpf", "seccomp"),
                         [](const auto& with) { return std::string(with.param); });

}  // namespace
}  // namespace swapd::test
