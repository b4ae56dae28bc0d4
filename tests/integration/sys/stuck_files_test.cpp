// A file system that answers no more, as one on a dead server: swapd makes do with what the kernel knows, and asks it
// nothing. Here it does answer, and counts how often it is asked.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "base/fd.h"
#include "sys/procfs/procfs.h"

namespace swapd::sys {
namespace {

// One file, "file", in a file system spoken to by hand (linux/fuse.h). Of what it tells nothing may be remembered.
class CountingFiles {
 public:
  // Mounts itself in a mount namespace of this thread's; `failure` is empty where that worked.
  explicit CountingFiles(std::string at) : at_(std::move(at)), device_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
    std::filesystem::create_directory(at_);
    const std::string options =
        "fd=" + std::to_string(device_.get()) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
    if (!device_)
      failure_ = std::string("/dev/fuse: ") + std::strerror(errno);
    else if (::unshare(CLONE_NEWNS) != 0 ||
             // EINVAL: the root is no mount of its own (chroot), and the umount below goes wherever this mount goes.
             (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 && errno != EINVAL) ||
             ::mount("swapd-test", at_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
      failure_ = std::string("mounting: ") + std::strerror(errno);
    else
      thread_ = std::thread([this] { serve(); });
  }
  CountingFiles(const CountingFiles&) = delete;
  CountingFiles& operator=(const CountingFiles&) = delete;
  ~CountingFiles() {
    ::umount2(at_.c_str(), MNT_DETACH);  // and the device says ENODEV
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] const std::string& failure() const { return failure_; }
  // Where a file is, and what is known of it.
  [[nodiscard]] int asked() const { return asked_.load(); }

 private:
  void serve() {
    alignas(fuse_in_header) std::array<char, 1 << 17> buffer;
    while (::read(device_.get(), buffer.data(), buffer.size()) > 0) {
      fuse_in_header in;
      std::memcpy(&in, buffer.data(), sizeof in);
      fuse_attr attr{};
      attr.ino = in.nodeid;
      attr.mode = in.nodeid == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
      attr.nlink = 1;
      switch (in.opcode) {
        case FUSE_INIT: {
          fuse_init_out out{};
          out.major = FUSE_KERNEL_VERSION;
          out.minor = FUSE_KERNEL_MINOR_VERSION;
          out.max_write = 4096;
          answer(in, out);
          break;
        }
        case FUSE_LOOKUP: {
          ++asked_;
          fuse_entry_out out{};
          out.nodeid = out.attr.ino = 2;
          out.attr.mode = S_IFREG | 0644;
          out.attr.nlink = 1;
          answer(in, out);
          break;
        }
        case FUSE_GETATTR: {
          ++asked_;
          fuse_attr_out out{};
          out.attr = attr;
          answer(in, out);
          break;
        }
        case FUSE_OPEN: {
          answer(in, fuse_open_out{});
          break;
        }
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
          break;  // want no answer
        default:
          reply(in, -ENOSYS, nullptr, 0);
      }
    }
  }
  template <typename Out>
  void answer(const fuse_in_header& in, const Out& out) {
    reply(in, 0, &out, sizeof out);
  }
  void reply(const fuse_in_header& in, int error, const void* body, std::size_t size) {
    std::array<char, 512> buffer;
    const fuse_out_header header{
        .len = static_cast<std::uint32_t>(sizeof(fuse_out_header) + size), .error = error, .unique = in.unique};
    std::memcpy(buffer.data(), &header, sizeof header);
    if (size != 0) std::memcpy(buffer.data() + sizeof header, body, size);
    (void)!::write(device_.get(), buffer.data(), header.len);
  }

  std::string at_;
  Fd device_;
  std::string failure_;
  std::atomic<int> asked_{0};
  std::thread thread_;
};

TEST(StuckFiles, AreNotAskedForWhatTheKernelKnows) {
  const std::string dir = testing::TempDir() + "swapd-stuck-" + std::to_string(::getpid());
  std::filesystem::create_directory(dir);
  {
    const CountingFiles files(dir + "/stuck");
    if (!files.failure().empty()) GTEST_SKIP() << files.failure();
    const Fd file(::open((dir + "/stuck/file").c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(file.valid()) << std::strerror(errno);
    const int asked = files.asked();
    EXPECT_GE(asked, 1);
    struct stat st {};
    ASSERT_EQ(::fstat(file.get(), &st), 0);
    ASSERT_GT(files.asked(), asked) << "whoever asks as usual is sent there";

    const int before = files.asked();
    const Procfs procfs;
    const auto identity = procfs.fd_identity(::gettid(), file.get());
    ASSERT_TRUE(identity.ok());
    EXPECT_EQ(identity->ino, 2U);
    // A path would have to be looked up there: the kernel says no at once (EAGAIN).
    EXPECT_FALSE(procfs.path_identity(::gettid(), dir + "/stuck/file").ok());
    EXPECT_FALSE(procfs.path_identity(::gettid(), dir + "/stuck/other").ok());
    EXPECT_EQ(files.asked(), before);

    // Nor of a program that has its root there.
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const Fd reading(ends[0]);
    Fd writing(ends[1]);
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const char done = ::chroot((dir + "/stuck").c_str()) == 0 ? 'y' : 'n';
      (void)!::write(writing.get(), &done, 1);
      for (;;) ::pause();
    }
    writing.reset();
    char done = 0;
    EXPECT_EQ(::read(reading.get(), &done, 1), 1);
    EXPECT_EQ(done, 'y');
    const int rooted = files.asked();
    EXPECT_FALSE(procfs.devpts(child).ok());
    EXPECT_EQ(files.asked(), rooted);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace swapd::sys
