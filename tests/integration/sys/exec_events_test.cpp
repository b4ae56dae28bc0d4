// Programs that start, told by the kernel: from the BPF program, and from the process connector.
#include "sys/bpf/exec_events.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sys/procfs/procfs.h"

extern char** environ;

namespace swapd::sys {
namespace {

Result<std::unique_ptr<ExecEvents>> from_bpf(const Facts& changes = {}) {
  auto opened = exec_events_from_bpf(changes);
  if (!opened) return std::move(opened).error();
  return std::move(opened->events);
}

class Execs : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto opened = GetParam() ? from_bpf() : exec_events_from_connector();
    if (!opened) GTEST_SKIP() << opened.error().text();
    events = std::move(opened).value();
  }
  static pid_t spawn(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    return ::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) == 0 ? pid : -1;
  }
  // The next event of this process, within ten seconds.
  std::optional<ExecEvent> event_of(pid_t pid) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (;;) {
      const auto found = std::ranges::find(unread, pid, &ExecEvent::pid);
      if (found != unread.end()) {
        const ExecEvent event = *found;
        unread.erase(unread.begin(), std::next(found));
        return event;
      }
      unread.clear();
      if (std::chrono::steady_clock::now() >= until) return std::nullopt;
      pollfd ready{events->fd(), POLLIN, 0};
      ::poll(&ready, 1, 100);
      auto read = events->read(1000);
      if (!read) return std::nullopt;
      unread = std::move(read->started);
    }
  }
  std::unique_ptr<ExecEvents> events;
  std::vector<ExecEvent> unread;  // of one look there may be two of one process
};

TEST_P(Execs, TellWhatAProgramIs) {
  const pid_t pid = spawn({"/bin/sleep", "100"});
  ASSERT_GT(pid, 0);
  const auto event = event_of(pid);
  const auto id = Procfs().thread_id(pid);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ASSERT_TRUE(event && id);
  EXPECT_EQ(event->start_time, id->start_time);
  EXPECT_EQ(event->uid, ::getuid());
  EXPECT_EQ(event->comm, "sleep");
  EXPECT_EQ(event->cmdline, GetParam() ? "/bin/sleep 100" : "");
  EXPECT_EQ(event->path, GetParam() ? "/bin/sleep" : "");
}

// Whoever starts it is its user, not whom it runs as.
TEST_P(Execs, ASetuidProgramIsItsStartersUser) {
  const std::string program = testing::TempDir() + "swapd-setuid-" + std::to_string(::getpid());
  std::filesystem::copy_file("/bin/sleep", program);
  std::filesystem::permissions(program, std::filesystem::perms(04755));
  const pid_t pid = spawn({"/usr/bin/setpriv", "--reuid", "65534", "--clear-groups", program, "100"});
  ASSERT_GT(pid, 0);
  const auto first = event_of(pid);  // of setpriv
  const auto event = event_of(pid);
  const auto effective = Procfs().uid(pid);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  std::filesystem::remove(program);
  ASSERT_TRUE(first && event && effective.ok());
  EXPECT_EQ(*effective, 0U) << program << " lies on a file system without setuid programs";
  EXPECT_EQ(event->uid, 65534U);
}

TEST_P(Execs, LongArgumentsAreCutOff) {
  const pid_t pid = spawn({"/bin/sh", "-c", "read x", std::string(20'000, 'x') + "\n"});
  ASSERT_GT(pid, 0);
  const auto event = event_of(pid);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ASSERT_TRUE(event);
  if (!GetParam()) return;
  EXPECT_EQ(event->cmdline.size(), 255U);
  EXPECT_TRUE(event->cmdline.starts_with("/bin/sh -c read x xxx")) << event->cmdline;
}

INSTANTIATE_TEST_SUITE_P(Both, Execs, testing::Bool(),
                         [](const auto& with) { return with.param ? "bpf" : "connector"; });

// Of the test itself.
class Changes : public testing::Test {
 protected:
  static bool told(ExecEvents& events) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (std::chrono::steady_clock::now() < until) {
      pollfd ready{events.fd(), POLLIN, 0};
      ::poll(&ready, 1, 100);
      const auto read = events.read(1000);
      if (!read) return false;
      if (std::ranges::count(read->changed, ::getpid()) != 0) return true;
    }
    return false;
  }
  static void rename(const char* name) { ::prctl(PR_SET_NAME, name, 0, 0, 0); }
};

TEST_F(Changes, OfNamesFromBpf) {
  auto opened = from_bpf({.comm = true});
  if (!opened) GTEST_SKIP() << opened.error().text();
  rename("another");
  EXPECT_TRUE(told(**opened));
}

TEST_F(Changes, OfNamesAndUsersFromTheConnector) {
  auto opened = changes_from_connector({.comm = true, .uid = true});
  if (!opened) GTEST_SKIP() << opened.error().text();
  rename("another");
  EXPECT_TRUE(told(**opened));
  ASSERT_EQ(::setresuid(0, 65534, 0), 0);
  ASSERT_EQ(::setresuid(0, 0, 0), 0);
  EXPECT_TRUE(told(**opened));
}

TEST_F(Changes, OfCgroupsFromBpf) {
  auto opened = from_bpf({.cgroup = true});
  if (!opened) GTEST_SKIP() << opened.error().text();
  const auto own = Procfs().cgroup(::getpid());
  std::string mount;
  for (const char* candidate : {"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"})
    if (own && std::filesystem::exists(candidate + *own + "/cgroup.procs") && mount.empty()) mount = candidate;
  if (mount.empty()) GTEST_SKIP() << "no cgroups where they are looked for";
  const std::string group = mount + "/swapd-changes-" + std::to_string(::getpid());
  std::error_code refused;
  if (!std::filesystem::create_directory(group, refused)) GTEST_SKIP() << "no cgroups can be made here";
  const auto move = [](const std::string& to) { std::ofstream(to + "/cgroup.procs") << ::getpid() << std::flush; };
  move(group);
  EXPECT_TRUE(told(**opened));
  move(mount + *own);
  std::filesystem::remove(group, refused);
}

TEST_F(Changes, AreNotToldWhereTheyAreNotAskedFor) {
  auto opened = from_bpf();
  if (!opened) GTEST_SKIP() << opened.error().text();
  rename("yet-another");
  pollfd ready{(*opened)->fd(), POLLIN, 0};
  ::poll(&ready, 1, 200);
  const auto read = (*opened)->read(1000);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->changed.empty());
}

// What ends before anybody can look is told with all that it was.
TEST(ExecEvents, FromBpfAreAllOfAThousandThatEndAtOnce) {
  auto opened = from_bpf();
  if (!opened) GTEST_SKIP() << opened.error().text();
  ExecEvents& events = **opened;
  std::set<pid_t> started, seen;
  const auto read = [&] {
    const auto some = events.read(1000);
    ASSERT_TRUE(some) << some.error().text();
    EXPECT_FALSE(some->lost);
    for (const ExecEvent& event : some->started)
      if (event.comm == "true" && event.cmdline == "/bin/true of swapd") seen.insert(event.pid);
  };
  for (int i = 0; i < 1000; ++i) {
    std::array<char*, 4> argv = {const_cast<char*>("/bin/true"), const_cast<char*>("of"), const_cast<char*>("swapd"),
                                 nullptr};
    pid_t pid = -1;
    ASSERT_EQ(::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ), 0);
    started.insert(pid);
    ::waitpid(pid, nullptr, 0);
    if (i % 100 == 0) read();
  }
  read();
  EXPECT_EQ(seen, started);
}

}  // namespace
}  // namespace swapd::sys
