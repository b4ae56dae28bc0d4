// Colours, and the line that tells that something takes long: on a terminal, and nowhere else.
#include "cli/paint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/fd.h"
#include "bus/json.h"
#include "cli/progress.h"
#include "cli/render.h"
#include "fakes/fake_backend.h"

namespace swapd::cli {
namespace {

using fakes::FakeBackend;
using testing::HasSubstr;
using testing::Not;

// A terminal of the test's own.
class Terminal : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ours_);
    ASSERT_EQ(::grantpt(ours_.get()), 0);
    ASSERT_EQ(::unlockpt(ours_.get()), 0);
    theirs_.reset(::open(::ptsname(ours_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(theirs_);
    ::unsetenv("NO_COLOR");
    ::setenv("TERM", "xterm", 1);
  }
  [[nodiscard]] std::string shown(int within_ms) const {
    pollfd entry{ours_.get(), POLLIN, 0};
    std::string out(4096, '\0');
    if (::poll(&entry, 1, within_ms) != 1) return "";
    out.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ours_.get(), out.data(), out.size()), 0)));
    return out;
  }
  [[nodiscard]] bool painted(const char* when = "auto", int fd = -1) const {
    return paint_for(when, fd < 0 ? theirs_.get() : fd)(Style::good, "x") != "x";
  }
  Fd ours_{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)}, theirs_;
};

TEST_F(Terminal, HasColours) { EXPECT_TRUE(painted()); }

TEST_F(Terminal, HasNoneWhereNobodyWantsThem) {
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(painted());
  EXPECT_TRUE(painted("always"));
  ::setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(painted()) << "empty says nothing";
  EXPECT_FALSE(painted("never"));
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(painted());
}

TEST_F(Terminal, APipeIsNone) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd reads(ends[0]), writes(ends[1]);
  EXPECT_FALSE(painted("auto", writes.get()));
  EXPECT_TRUE(painted("always", writes.get()));
}

TEST_F(Terminal, TellsWhatTakesLongAndWipesItAway) {
  {
    const Progress progress("waiting for", theirs_.get(), [] { return "7 of 9"; });
    EXPECT_THAT(shown(10'000), testing::MatchesRegex("\r\033\\[Kwaiting for [0-9.]+ m?s, 7 of 9"));
  }
  EXPECT_THAT(shown(10'000), testing::EndsWith("\r\033[K"));
}

TEST_F(Terminal, WhatIsDoneAtOnceIsNotMentioned) {
  { const Progress progress("waiting for", theirs_.get()); }
  EXPECT_EQ(shown(0), "");
}

// Paint takes no room: without it the painted text is the plain one.
TEST(Painted, TextIsTheSameText) {
  FakeBackend backend;
  const auto bare = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('\033', at)) != std::string::npos;)
      text.erase(at, text.find('m', at) + 1 - at);
    return text;
  };
  const Paint paint(true);
  const std::string ps = bus::threads_json(backend.threads()), status = bus::status_json(backend.status()),
                    why = bus::why_json(*backend.why(FakeBackend::client_pid)),
                    policy = bus::policy_json(backend.policy());
  EXPECT_THAT(render_ps(ps, paint), HasSubstr("\033["));
  EXPECT_EQ(bare(render_ps(ps, paint)), render_ps(ps));
  EXPECT_THAT(render_status(status, paint), HasSubstr("\033["));
  EXPECT_EQ(bare(render_status(status, paint)), render_status(status));
  EXPECT_THAT(render_why(why, paint), HasSubstr("\033[32min force"));
  EXPECT_EQ(bare(render_why(why, paint)), render_why(why));
  EXPECT_EQ(bare(render_policy(policy, paint)), render_policy(policy));
  EXPECT_THAT(render_ps(ps), Not(HasSubstr("\033")));
}

}  // namespace
}  // namespace swapd::cli
