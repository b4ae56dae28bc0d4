// What a loan is worth at a disk that groups share: two readers in two cgroups,
// on a loop device whose scheduler is bfq.
#include <fcntl.h>
#include <linux/loop.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actuate/competitors.h"
#include "base/fd.h"
#include "process.h"
#include "sys/procfs/io_counters.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/io_groups.h"
#include "sys/sched/scheduler.h"

namespace swapd::actuate {
namespace {

namespace fs = std::filesystem;

// Each reader has a part of the disk, far from the other's: bfq takes two that
// read close together for one.
constexpr off_t disk_size = 64 << 20, block = 64 << 10, part = 24 << 20;

// False: no such file, or the kernel refuses.
bool write(const fs::path& file, const std::string& text) {
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

class BfqDisk {
 public:
  explicit BfqDisk(const std::string& directory) {
    std::string image = directory + "/swapd-test-XXXXXX";
    const Fd file(::mkostemp(image.data(), O_CLOEXEC));
    (void)::unlink(image.c_str());
    const Fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    if (!file || !control) return;
    const std::string some(block, 'x');
    for (off_t at = 0; at < disk_size; at += block)
      if (::pwrite(file.get(), some.data(), some.size(), at) != block) return;
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    const std::string name = "loop" + std::to_string(number);
    loop_.reset(::open(("/dev/" + name).c_str(), O_RDWR | O_CLOEXEC));
    if (!loop_ || ::ioctl(loop_.get(), LOOP_SET_FD, file.get()) != 0) return;
    bound_ = true;
    const std::string queue = "/sys/block/" + name + "/queue/";
    // Its own favours for who has begun just now would come on top; and of what
    // it takes for a disk with a queue of its own it now and then leaves the
    // order to that.
    if (write(queue + "rotational", "1") && write(queue + "scheduler", "bfq") &&
        write(queue + "iosched/low_latency", "0"))
      path_ = "/dev/" + name;
  }
  ~BfqDisk() {
    if (bound_) ::ioctl(loop_.get(), LOOP_CLR_FD);
  }
  BfqDisk(const BfqDisk&) = delete;
  BfqDisk& operator=(const BfqDisk&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }  // empty: none can be had

 private:
  std::string path_;
  Fd loop_;
  bool bound_ = false;
};

class BlkioGroup {
 public:
  explicit BlkioGroup(const std::string& name)
      : directory_("/sys/fs/cgroup/blkio/swapd-test-" + std::to_string(::getpid()) + "-" + name) {
    std::error_code ignored;
    fs::create_directory(directory_, ignored);
  }
  ~BlkioGroup() { ::rmdir(directory_.c_str()); }
  BlkioGroup(const BlkioGroup&) = delete;
  BlkioGroup& operator=(const BlkioGroup&) = delete;
  [[nodiscard]] fs::path file(const char* name) const { return directory_ / name; }
  [[nodiscard]] int weight() const {
    int out = -1;
    std::ifstream(file("blkio.bfq.weight")) >> out;
    return out;
  }

 private:
  fs::path directory_;
};

// Reads the disk past the cache, for a minute at most.
class Reader {
 public:
  Reader(const std::string& disk, off_t begin, const BlkioGroup& group) : pid_(::fork()) {
    if (pid_ != 0) {
      while (read() == 0 && ::kill(pid_, 0) == 0) std::this_thread::yield();  // by now it is in its group
      return;
    }
    ::alarm(60);
    void* memory = std::aligned_alloc(4096, block);
    const int fd = ::open(disk.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (!write(group.file("cgroup.procs"), std::to_string(::getpid()))) ::_exit(1);
    for (off_t at = 0;; at = (at + block) % part)
      if (::pread(fd, memory, block, begin + at) <= 0) ::_exit(1);
  }
  ~Reader() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] double read() const {
    const auto io = sys::process_io("/proc", pid_);
    return io ? static_cast<double>(io->read_bytes) : 0;
  }

 private:
  pid_t pid_;
};

// How much more `a` reads, in so long as the disk needs to have both a few
// hundred times in turn.
double ratio(const Reader& a, const Reader& b) {
  const double a_before = a.read(), b_before = b.read();
  while (a.read() + b.read() - a_before - b_before < static_cast<double>(32 * disk_size)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // the disk's own threads need the CPUs
    if (::waitpid(a.pid(), nullptr, WNOHANG) != 0 || ::waitpid(b.pid(), nullptr, WNOHANG) != 0) return 0;
  }
  return (a.read() - a_before) / std::max(b.read() - b_before, 1.0);
}

class IoShare : public LinuxTest {};

TEST_F(IoShare, TheGroupsWeightIsLentToo) {
  const BfqDisk disk(fs::temp_directory_path());
  if (disk.path().empty()) GTEST_SKIP() << "no loop device with the scheduler bfq";
  const BlkioGroup ours("provider"), theirs("hog");
  if (ours.weight() < 0) GTEST_SKIP() << "no v1 blkio controller with weights of bfq";
  const sys::Procfs procfs;
  const sys::LinuxScheduler scheduler;
  const sys::LinuxGroups groups;
  const sys::LinuxIoGroups bfq(sys::LinuxIoGroups::By::bfq);
  ASSERT_TRUE(bfq.count());
  Actuator::Options with = options();
  with.disk_groups = {{DiskGroups::By::bfq, &bfq}};
  CompetitorScan scan(procfs, groups, scheduler, with.disk_groups);
  Actuator actuator(scheduler, groups, std::move(with));
  SchedAttr lent = nice_of(-15);
  lent.reset_on_fork = true;
  // On a busy machine it may have no CPU to use its share with. And what bfq takes two readers for, it mostly keeps to
  // (it may serve them in turn, whatever their weights): others are tried then.
  double best = 0;
  for (int i = 0; i < 16 && best < 2.5; ++i) {
    const Reader provider(disk.path(), 0, ours), hog(disk.path(), disk_size - part, theirs);
    const auto id = procfs.thread_id(provider.pid());
    ASSERT_TRUE(id.ok());
    const std::vector boosts{Boost{*id, *id, {ResourceKind::pipe, {1}}, lent}};
    for (int looks = 0; looks < 1000 && ours.weight() != 1000; ++looks) {  // not at each look both wait for the disk
      actuator.set_competitors(scan.look({provider.pid()}));
      actuator.apply(boosts, SteadyClock().now());
    }
    ASSERT_EQ(ours.weight(), 1000);
    EXPECT_EQ(theirs.weight(), 100);
    for (int j = 0; j < 2 && best < 2.5; ++j) best = std::max(best, ratio(provider, hog));
    actuator.apply({}, SteadyClock().now());
    ASSERT_EQ(ours.weight(), 100);
  }
  EXPECT_GE(best, 2.5);
}

}  // namespace
}  // namespace swapd::actuate
