// The parts of Procfs that need no other process: this one, and a fake root.
#include "sys/procfs/procfs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "sys/procfs/procfs_path.h"

namespace swapd::sys {
namespace {

using testing::Contains;

TEST(ProcPath, LeadsNowhereWhereTheThreadHasGone) {
  const pid_t own = ::getpid();
  EXPECT_EQ(std::string(ProcPath("/proc", own, "stat").c_str()), "/proc/" + std::to_string(own) + "/stat");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  errno = 0;
  EXPECT_EQ(std::string(ProcPath("/proc", child, "fd/", 3).c_str()), "/proc/0/fd/3");
  EXPECT_EQ(errno, 0);
  const std::string number = std::to_string(child);
  EXPECT_EQ(std::string(ProcPath::of_thread("/proc", child, "stat").c_str()), "/proc/0/task/" + number + "/stat");
  EXPECT_EQ(std::string(ProcPath("/elsewhere", child, "stat").c_str()), "/elsewhere/" + number + "/stat")
      << "another /proc has other numbers";
  EXPECT_TRUE(Procfs().stat(child).error().gone());
}

TEST(Procfs, ReadsThisProcess) {
  const Procfs procfs;
  const auto st = procfs.stat(::getpid());
  ASSERT_TRUE(st.ok());
  EXPECT_EQ(st->state, 'R');
  EXPECT_EQ(st->ppid, ::getppid());
  EXPECT_EQ(procfs.thread_id(::getpid())->start_time, st->start_time);
  EXPECT_EQ(procfs.tgid(::getpid()).value_or(0), ::getpid());
  EXPECT_EQ(procfs.uid(::getpid()).value_or(99), ::geteuid());
  EXPECT_THAT(procfs.processes(), Contains(::getpid()));
  EXPECT_THAT(procfs.threads(::getpid()).value_or({}), Contains(::getpid()));
  EXPECT_FALSE(procfs.cmdline(::getpid()).value_or({}).empty());
  EXPECT_EQ(procfs.exe(::getpid()).value_or(""), std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_FALSE(procfs.held_by_seccomp(::getpid()));
  EXPECT_EQ(procfs.namespace_pids(::getpid()).value_or({}).front(), ::getpid());
}

TEST(Procfs, DescriptorsAreWhatTheyAreNow) {
  const Procfs procfs;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  const auto a = procfs.fd_identity(::getpid(), reading.get());
  const auto b = procfs.fd_identity(::getpid(), writing.get());
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->ino, b->ino);
  EXPECT_TRUE(S_ISFIFO(a->mode));
  EXPECT_EQ(procfs.fd_access(::getpid(), reading.get()).value_or(-1), O_RDONLY);
  EXPECT_EQ(procfs.fd_access(::getpid(), writing.get()).value_or(-1), O_WRONLY);
  EXPECT_THAT(procfs.fds(::getpid()).value_or({}), Contains(writing.get()));
  const auto table = procfs.fd_table(::getpid());
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(Procfs::identity_in(*table, reading.get())->ino, a->ino);
  const int number = writing.get();
  writing.reset();
  EXPECT_TRUE(procfs.fd_identity(::getpid(), number).error().gone());
  EXPECT_TRUE(Procfs::identity_in(*table, number).error().gone());
  EXPECT_FALSE(Procfs::identity_in(*table, -1).ok());
  EXPECT_FALSE(procfs.fd_identity(::getpid(), -1).ok());
}

// A program can make this text as long as it likes: a line for each descriptor in an epoll set, or for each lock.
TEST(Procfs, OfAHugeFdinfoOnlySoMuchIsRead) {
  std::string root = testing::TempDir() + "swapd-procfs-XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  std::filesystem::create_directories(root + "/7/fdinfo");
  {
    std::ofstream file(root + "/7/fdinfo/3");
    file << "pos:\t0\nflags:\t02\n";
    for (int i = 0; i < 200'000; ++i) file << "tfd: " << 100'000 + i << " events: 19 data: 0 pos:0 ino:61 sdev:9\n";
  }
  const auto size = std::filesystem::file_size(root + "/7/fdinfo/3");
  const auto info = Procfs(root).fdinfo(7, 3);
  ASSERT_TRUE(info.ok());
  EXPECT_GT(info->epoll.size(), 1000U);
  EXPECT_LT(info->epoll.size(), 110'000U) << "of " << size << " bytes";
  std::filesystem::remove_all(root);
}

TEST(Procfs, SpecialDescriptors) {
  const Procfs procfs;
  const Fd event(::eventfd(0, EFD_CLOEXEC));
  std::array<char, 64> buffer{};
  EXPECT_EQ(procfs.fd_link(::getpid(), event.get(), buffer), "anon_inode:[eventfd]");
  EXPECT_EQ(procfs.fd_link(::getpid(), event.get()).value_or(""), "anon_inode:[eventfd]");
  const auto hot = procfs.fd_numbers(::getpid(), event.get());
  const auto whole = procfs.fdinfo(::getpid(), event.get());
  ASSERT_TRUE(hot.ok() && whole.ok());
  EXPECT_GE(hot->eventfd_id, 0);
  EXPECT_EQ(hot->eventfd_id, whole->eventfd_id);
}

TEST(Procfs, AProgramsOwnNameIsNoObstacle) {
  const Procfs procfs;
  std::array<char, 16> before{};
  ::prctl(PR_GET_NAME, before.data());
  const std::uint64_t start = procfs.thread_id(::getpid())->start_time;
  ASSERT_EQ(::prctl(PR_SET_NAME, "x) S 1\n(y "), 0);
  EXPECT_EQ(procfs.thread_id(::getpid())->start_time, start);
  EXPECT_EQ(procfs.comm(::getpid()).value_or(""), "x) S 1\n(y ");
  ::prctl(PR_SET_NAME, before.data());
}

TEST(Procfs, MemoryAndMappings) {
  const std::uint64_t value = 0x5157415044ULL;
  std::uint64_t read = 0;
  EXPECT_TRUE(Procfs::read_memory(::getpid(), reinterpret_cast<std::uint64_t>(&value), &read, sizeof read).ok());
  EXPECT_EQ(read, value);
  EXPECT_EQ(Procfs::read_memory(::getpid(), 16, &read, sizeof read).error().code(), EFAULT);
  const auto mapping = Procfs().mapping(::getpid(), reinterpret_cast<std::uint64_t>(&value));
  ASSERT_TRUE(mapping.ok());
  EXPECT_FALSE(mapping->shared);
  EXPECT_TRUE(Procfs().mapping(::getpid(), 16).error().gone());
}

TEST(Procfs, APathIsTheProcesssOwn) {
  const Procfs procfs;
  struct stat st {};
  ASSERT_EQ(::stat("/proc/self/exe", &st), 0);
  const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  const auto found = procfs.path_identity(::getpid(), path);
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->ino, st.st_ino);
  EXPECT_EQ(found->dev, st.st_dev);
  EXPECT_FALSE(procfs.path_identity(::getpid(), "/nowhere/at/all").ok());
}

TEST(Procfs, TheRootIsAParameter) {
  const std::string root = testing::TempDir() + "swapd-proc-" + std::to_string(::getpid());
  std::filesystem::create_directories(root + "/7/task/7");
  std::filesystem::create_directories(root + "/7/task/8");
  std::filesystem::create_directories(root + "/self");
  std::ofstream(root + "/7/task/7/stat") << "7 (a) R 1 1 1";
  std::ofstream(root + "/7/autogroup") << "/autogroup-3 nice 2\n";
  std::ofstream(root + "/7/wchan") << "__seccomp_filter";
  std::ofstream(root + "/7/syscall") << "";
  std::ofstream(root + "/7/task/7/children") << "9 ";
  std::ofstream(root + "/7/task/8/children") << "10 11 ";
  std::ofstream(root + "/locks") << "1: FLOCK  ADVISORY  WRITE 7 fe:00:9 0 EOF\n";
  const Procfs procfs(root);
  EXPECT_THAT(procfs.processes(), testing::ElementsAre(7));
  EXPECT_EQ(procfs.stat(7).error().code(), EPROTO);
  EXPECT_EQ(procfs.syscall(7).error().code(), EPROTO);
  EXPECT_EQ(procfs.autogroup(7)->nice, 2);
  EXPECT_TRUE(procfs.held_by_seccomp(7));
  EXPECT_THAT(procfs.children(7).value_or({}), testing::UnorderedElementsAre(9, 10, 11));
  EXPECT_EQ(procfs.locks().size(), 1U);
  EXPECT_TRUE(procfs.stat(8).error().gone());
  EXPECT_TRUE(procfs.fds(8).error().gone());
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace swapd::sys
