// Bad input: one line, the exit status, and nothing changed.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "session.h"

namespace swapd::test {
namespace {

TEST(Metrics, are_a_file_while_swapd_runs) {
  std::string dir = testing::TempDir() + "swapd-metrics-XXXXXX";
  ASSERT_NE(::mkdtemp(dir.data()), nullptr);
  const std::string file = dir + "/swapd.prom";
  {
    Session session({"--metrics", file});
    if (!session.failure().empty()) GTEST_SKIP() << session.failure();
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    EXPECT_NE(text.str().find("\nswapd_managed_threads 0\n"), std::string::npos) << text.str();
    EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0644)) << "an exporter is no root";
  }
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(file); })) << "nobody reads what was";
  const Output nowhere = run({SWAPD_BINARY, "--foreground", "--socket", dir + "/s", "--state-dir", dir + "/state",
                              "--metrics", dir + "/none/swapd.prom"});
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_NE(nowhere.err.find("--metrics: writing " + dir + "/none/swapd.prom.new: No such file"), std::string::npos)
      << nowhere.err;
  std::filesystem::remove_all(dir);
}

TEST(Mistakes, are_one_line_and_status_2) {
  Session session;
  if (!session.failure().empty()) GTEST_SKIP() << session.failure();
  const auto one_line = [](const Output& o) { return std::count(o.err.begin(), o.err.end(), '\n') == 1; };
  for (const auto& [arguments, status] :
       std::vector<std::pair<std::vector<std::string>, int>>{{{"run", "--", "/no/such/program"}, 127},
                                                             {{"run", "--", "/etc/passwd"}, 126},
                                                             {{"run", "--class", "nosuch", "--", "/bin/true"}, 2},
                                                             {{"run", "--fifo", "500", "--", "/bin/true"}, 2},
                                                             {{"why", "999999"}, 2},
                                                             {{"why", "1"}, 2},
                                                             {{"set", "999999", "--nice", "3"}, 2},
                                                             {{"release", "1"}, 2}}) {
    const Output o = session.ctl(arguments);
    EXPECT_EQ(o.status, status) << arguments[0] << ": " << o.err;
    EXPECT_TRUE(one_line(o)) << o.err;
    EXPECT_TRUE(o.out.empty()) << o.out;
  }
  std::filesystem::create_directory(session.path("open"));
  std::filesystem::permissions(session.path("open"), std::filesystem::perms(0777));
  const Output open =
      run({SWAPD_BINARY, "--foreground", "--socket", session.path("s2"), "--state-dir", session.path("open")});
  EXPECT_EQ(open.status, 1);
  EXPECT_NE(open.err.find("others may write to it; give another with --state-dir"), std::string::npos) << open.err;
  std::filesystem::create_directory(session.path("foreign"));
  std::filesystem::permissions(session.path("foreign"), std::filesystem::perms(0700));
  std::filesystem::create_directory_symlink(session.path("foreign"), session.path("link"));
  for (const char* directory : {"foreign", "link"}) {
    if (std::string(directory) == "foreign" && ::chown(session.path(directory).c_str(), 65534, 65534) != 0) continue;
    const Output refused =
        run({SWAPD_BINARY, "--foreground", "--socket", session.path("s2"), "--state-dir", session.path(directory)});
    EXPECT_EQ(refused.status, 1) << directory;
    EXPECT_NE(refused.err.find("give another with --state-dir"), std::string::npos) << refused.err;
  }
  const Output taken =
      run({SWAPD_BINARY, "--foreground", "--socket", session.path("s2"), "--state-dir", session.path("state")});
  EXPECT_EQ(taken.status, 1);
  EXPECT_NE(taken.err.find("another swapd uses the state directory"), std::string::npos) << taken.err;
  const Output in_use = run({SWAPD_BINARY, "--restore", "--state-dir", session.path("state")});
  EXPECT_EQ(in_use.status, 1) << "what it lent is its own to take back";
  EXPECT_NE(in_use.err.find("another swapd uses the state directory"), std::string::npos) << in_use.err;
  const Output nothing = run({SWAPD_BINARY, "--restore", "--state-dir", session.path("none")});
  EXPECT_EQ(nothing.status, 0) << nothing.err;
  EXPECT_NE(nothing.out.find("there is no journal"), std::string::npos) << nothing.out;
  EXPECT_FALSE(std::filesystem::exists(session.path("none")));
  const Output nobody = run({SWAPCTL_BINARY, "--socket", "/nonexistent/s", "status"});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_TRUE(one_line(nobody)) << nobody.err;
}

}  // namespace
}  // namespace swapd::test
