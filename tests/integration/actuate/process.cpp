#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sys/procfs/procfs.h"
#include "sys/sched/groups.h"
#include "sys/sched/scheduler.h"

namespace swapd::actuate {

Process::Process(const How& how) {
  start(how, [&how](int report) {
    if (::write(report, "r", 1) != 1) return;
    volatile std::uint64_t count = 0;
    while (how.spin) count = count + 1;
    while (true) ::pause();
  });
  EXPECT_EQ(report(), "r");
}

Process::Process(const How& how, const std::function<void(int report)>& body) { start(how, body); }

void Process::start(const How& how, const std::function<void(int report)>& body) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  report_.reset(ends[0]);
  const Fd writer(ends[1]);
  const pid_t test = ::getpid();
  pid_ = ::fork();
  ASSERT_GE(pid_, 0);
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != test) ::_exit(1);
    ::alarm(30);
    if (how.own_session) ::setsid();
    if (how.spin) {
      cpu_set_t cpus;
      CPU_ZERO(&cpus);
      CPU_SET(0, &cpus);
      ::sched_setaffinity(0, sizeof cpus, &cpus);
    }
    const bool set = sys::LinuxScheduler().set(0, how.attr).ok();
    if (set) body(writer.get());
    ::_exit(set ? 0 : 1);
  }
  const auto id = sys::Procfs().thread_id(pid_);
  ASSERT_TRUE(id.ok());
  id_ = *id;
}

Process::~Process() { kill(); }

void Process::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

Duration Process::cpu() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

std::string Process::report() const {
  pollfd wait{report_.get(), POLLIN, 0};
  std::array<char, 64> text{};
  if (::poll(&wait, 1, 10'000) != 1) return {};
  const ssize_t n = ::read(report_.get(), text.data(), text.size());
  return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : std::string();
}

CpuGroupV1::CpuGroupV1(const std::string& name) {
  const sys::LinuxGroups groups;
  if (groups.mount().version != sys::GroupMount::Version::v1) return;
  path_ = "/swapd-test-" + std::to_string(::getpid()) + "-" + name;
  const std::string dir = groups.mount().point + path_;
  if (::mkdir(dir.c_str(), 0755) == 0) dir_ = dir;
}

CpuGroupV1::~CpuGroupV1() {
  if (valid()) {
    EXPECT_EQ(::rmdir(dir_.c_str()), 0);
  }
}

std::string CpuGroupV1::read(const std::string& file) const {
  std::ifstream in(dir_ + "/" + file);
  std::string text;
  std::getline(in, text);
  return text;
}

bool CpuGroupV1::write(const std::string& file, const std::string& text) const {
  std::ofstream out(dir_ + "/" + file);
  out << text << std::flush;
  return out.good();
}

double ratio(const Process& a, const Process& b, Duration time) {
  const SteadyClock clock;
  const Time deadline = clock.now() + std::chrono::seconds(20);
  Duration a_used{};
  Duration b_used{};
  for (const Duration least : {Duration(std::chrono::milliseconds(100)), time}) {
    const Duration a_before = a.cpu();
    const Duration b_before = b.cpu();
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      a_used = a.cpu() - a_before;
      b_used = b.cpu() - b_before;
    } while (a_used + b_used < least && clock.now() < deadline);
    EXPECT_GE(a_used + b_used, least) << "the two did not get to run";
  }
  return static_cast<double>(a_used.count()) / static_cast<double>(std::max<Duration::rep>(b_used.count(), 1));
}

void LinuxTest::SetUp() {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root (CAP_SYS_NICE)";
  std::string pattern = testing::TempDir() + "swapd-actuate-XXXXXX";
  dir_ = ::mkdtemp(pattern.data());
}

LinuxTest::~LinuxTest() {
  if (!dir_.empty()) std::filesystem::remove_all(dir_);
}

}  // namespace swapd::actuate
