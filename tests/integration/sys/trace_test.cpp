// Tracepoints through perf: who wakes whom, who signals whom. And the format files that tell where the fields are.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "supervised.h"
#include "sys/perf/perf.h"
#include "sys/perf/tracefs.h"

namespace swapd::sys {
namespace {

using test::eventually;
using test::state_of;
using Point = TraceWatch::Point;

constexpr std::string_view waking_format =
    "name: sched_waking\nID: 326\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\n\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\nprint fmt: \"field:pid_t wrong;\toffset:99;\tsize:4;\"\n";

TEST(TraceFormat, HasTheNumberAndThePlacesOfTheFields) {
  const auto format = parse_trace_format(waking_format);
  ASSERT_TRUE(format) << format.error().text();
  EXPECT_EQ(format->id, 326U);
  ASSERT_TRUE(format->field("pid"));
  EXPECT_EQ(format->field("pid")->offset, 24U);
  EXPECT_EQ(format->field("comm")->size, 16U);
  EXPECT_EQ(format->field("common_flags")->offset, 2U);
  EXPECT_FALSE(format->field("wrong"));
}

TEST(TraceFormat, OfSomethingElse) {
  EXPECT_FALSE(parse_trace_format(""));
  EXPECT_FALSE(parse_trace_format("name: x\n"));
  EXPECT_FALSE(parse_trace_format("ID: many\n"));
  const auto odd = parse_trace_format("ID: 1\nfield:int x;\toffset:here;\tsize:4;\nfield:\nfield:int y\n");
  ASSERT_TRUE(odd);
  EXPECT_TRUE(odd->fields.empty());
}

TEST(Tracefs, IsThereWithoutBeingMountedAnywhere) {
  const auto tracefs = open_tracefs();
  ASSERT_TRUE(tracefs) << tracefs.error().text();
  const auto format = read_trace_format(tracefs->get(), "signal/signal_generate");
  ASSERT_TRUE(format) << format.error().text();
  EXPECT_TRUE(format->field("sig"));
  EXPECT_FALSE(read_trace_format(tracefs->get(), "swapd/no_such"));
}

// A child that waits for one byte (or a signal) and ends.
class Sleeper {
 public:
  Sleeper() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) std::abort();
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    write_end_.reset();
    std::signal(SIGUSR1, [](int) {});
    std::signal(SIGUSR2, SIG_IGN);
    for (char byte = 0; ::read(read_end_.get(), &byte, 1) < 0;) {
    }
    ::_exit(0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void wake() const { (void)!::write(write_end_.get(), "x", 1); }
  [[nodiscard]] bool rests() const {
    return eventually([&] { return state_of(pid_) == 'S'; });
  }

 private:
  Fd read_end_, write_end_;
  pid_t pid_ = -1;
};

std::vector<TraceRecord> records_of(TraceWatch& watch, pid_t target) {
  std::array<TraceRecord, 64> batch;
  std::vector<TraceRecord> found;
  while (const std::size_t n = watch.read(batch.data(), batch.size()))
    for (std::size_t i = 0; i < n; ++i)
      if (batch.at(i).target == target) found.push_back(batch.at(i));
  return found;
}

TEST(TraceWatch, NamesTheWakerOfAThread) {
  const Sleeper child;
  ASSERT_TRUE(child.rests());
  const auto watch = TraceWatch::open(Point::sched_waking, -1);
  ASSERT_TRUE(watch) << watch.error().text();
  EXPECT_FALSE((*watch)->fds().empty());
  const Time before = std::chrono::steady_clock::now();
  child.wake();
  const auto records = records_of(**watch, child.pid());
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].by, ::getpid());
  EXPECT_FALSE(records[0].hard_interrupt);
  EXPECT_LE(before, records[0].time);
  EXPECT_LE(records[0].time, std::chrono::steady_clock::now());
}

TEST(TraceWatch, OfOneThreadSeesItsWakesAlone) {
  const Sleeper mine;
  const Sleeper others;
  ASSERT_TRUE(mine.rests() && others.rests());
  const auto watch = TraceWatch::open(Point::sched_waking, 0);
  ASSERT_TRUE(watch) << watch.error().text();
  const pid_t other = ::fork();
  if (other == 0) {
    others.wake();
    ::_exit(0);
  }
  ::waitpid(other, nullptr, 0);
  mine.wake();
  std::array<TraceRecord, 64> batch;
  const std::size_t n = (*watch)->read(batch.data(), batch.size());
  bool saw_mine = false;
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(batch.at(i).by, ::gettid());
    EXPECT_NE(batch.at(i).target, others.pid());
    saw_mine |= batch.at(i).target == mine.pid();
  }
  EXPECT_TRUE(saw_mine);
}

TEST(TraceWatch, NamesSenderAndReceiverOfASignal) {
  const Sleeper child;
  ASSERT_TRUE(child.rests());
  const auto watch = TraceWatch::open(Point::signal_generate, -1);
  ASSERT_TRUE(watch) << watch.error().text();
  ::kill(child.pid(), SIGUSR1);
  auto records = records_of(**watch, child.pid());
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].by, ::gettid());
  EXPECT_EQ(records[0].detail, SIGUSR1);
  EXPECT_TRUE(records[0].group);
  ASSERT_TRUE(child.rests());
  ::syscall(SYS_tgkill, child.pid(), child.pid(), SIGUSR1);
  records = records_of(**watch, child.pid());
  ASSERT_EQ(records.size(), 1U);
  EXPECT_FALSE(records[0].group);
}

TEST(TraceWatch, LeavesOutASignalThatIsIgnored) {
  const Sleeper child;
  ASSERT_TRUE(child.rests());
  const auto watch = TraceWatch::open(Point::signal_generate, -1);
  ASSERT_TRUE(watch);
  ::kill(child.pid(), SIGUSR2);
  EXPECT_TRUE(records_of(**watch, child.pid()).empty());
}

// A timer's signal has no sender: whoever was running when the clock struck is not it.
// A timer's wake is made in interrupt context, but the kernel may as well end a nap from a thread's: one of many is
// enough.
TEST(TraceWatch, MarksWhatAnInterruptDid) {
  const auto watch = TraceWatch::open(Point::sched_waking, -1);
  ASSERT_TRUE(watch);
  std::size_t wakes = 0;
  EXPECT_TRUE(eventually([&] {
    const pid_t child = ::fork();
    if (child == 0) {
      const timespec nap{0, 5'000'000};
      ::_exit(::clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr));
    }
    ::waitpid(child, nullptr, 0);
    bool by_interrupt = false;
    for (const TraceRecord& r : records_of(**watch, child)) {
      ++wakes;
      by_interrupt |= r.hard_interrupt;
    }
    return by_interrupt;
  })) << wakes
      << " wakes";
}

// Two spinners on one CPU preempt each other without end; a pipe puts one to sleep.
TEST(TraceWatch, TellsOfSleepAndNotOfPreemption) {
  std::array<int, 2> stop{};
  ASSERT_EQ(::pipe(stop.data()), 0);
  const auto spinner = [&] {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    ::sched_setaffinity(0, sizeof first, &first);
    ::alarm(20);
    ::fcntl(stop[0], F_SETFL, O_NONBLOCK);
    char byte = 0;
    while (::read(stop[0], &byte, 1) != 1) {
    }
    ::pause();
    ::_exit(0);
  };
  const pid_t watched = spinner();
  const pid_t rival = spinner();
  auto turns = SwitchWatch::open(watched);
  auto sleeps = TraceWatch::open(Point::sched_block, watched, true);
  ASSERT_TRUE(turns && sleeps);
  std::size_t preempted = 0;
  EXPECT_TRUE(eventually([&] {
    std::array<SwitchRecord, 64> records;
    const std::size_t n = (*turns)->read(records.data(), records.size());
    for (std::size_t i = 0; i < n; ++i) preempted += records.at(i).preempted ? 1 : 0;
    return preempted >= 3;
  }));
  std::array<TraceRecord, 8> records;
  EXPECT_EQ((*sleeps)->read(records.data(), records.size()), 0U);
  EXPECT_EQ(::write(stop[1], "xx", 2), 2);  // one byte each
  EXPECT_TRUE(eventually([&] { return (*sleeps)->read(records.data(), records.size()) > 0; }));
  EXPECT_EQ(records[0].target, watched);
  for (const pid_t pid : {watched, rival}) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  ::close(stop[0]);
  ::close(stop[1]);
}

TEST(TraceWatch, OfAThreadThatIsGone) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  const auto watch = TraceWatch::open(Point::sched_waking, pid);
  ASSERT_FALSE(watch);
  EXPECT_TRUE(watch.error().gone());
}

}  // namespace
}  // namespace swapd::sys
