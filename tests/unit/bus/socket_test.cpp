// The file of the private socket: its mode, its directory, what a dead or a living daemon left there.
#include "bus/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace swapd::bus {
namespace {

class Socket : public testing::Test {
 protected:
  Socket() {
    std::string name = (std::filesystem::temp_directory_path() / "swapd-test-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    path_ = directory_ + "/a/b/swapd.sock";
  }
  ~Socket() override { std::filesystem::remove_all(directory_); }
  std::string directory_, path_;
};

TEST_F(Socket, IsMadeForItsOwnerOnlyWhateverTheUmask) {
  const mode_t old = ::umask(0);
  const Result<ListeningSocket> socket = ListeningSocket::open(path_);
  ::umask(old);
  ASSERT_TRUE(socket.ok()) << socket.error().text();
  struct stat file {};
  ASSERT_EQ(::lstat(path_.c_str(), &file), 0);
  EXPECT_TRUE(S_ISSOCK(file.st_mode));
  EXPECT_EQ(file.st_mode & 07777, 0600U);
  EXPECT_EQ(socket->owner(), ::geteuid());
}

TEST_F(Socket, IsRemovedAtTheEnd) {
  { ASSERT_TRUE(ListeningSocket::open(path_).ok()); }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Socket, ASecondDaemonIsToldThatOneRuns) {
  const Result<ListeningSocket> first = ListeningSocket::open(path_);
  ASSERT_TRUE(first.ok());
  const Result<ListeningSocket> second = ListeningSocket::open(path_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), EADDRINUSE);
  EXPECT_NE(second.error().context().find("already running at " + path_), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(Socket, ADirectoryThatSomebodyHoldsIsNotWaitedForForEver) {
  std::filesystem::create_directories(directory_ + "/a/b");
  const Fd held(::open((directory_ + "/a/b").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  const Result<ListeningSocket> socket = ListeningSocket::open(path_);
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.error().code(), EBUSY);
}

TEST_F(Socket, WhatADeadDaemonLeftIsReplaced) {
  std::filesystem::create_directories(directory_ + "/a/b");
  {
    const Fd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(path_));
  EXPECT_TRUE(ListeningSocket::open(path_).ok());
}

TEST_F(Socket, AFileThatIsNoSocketIsNotTouched) {
  std::filesystem::create_directories(directory_ + "/a/b");
  std::ofstream(path_) << "precious";
  const Result<ListeningSocket> socket = ListeningSocket::open(path_);
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.error().code(), EEXIST);
  EXPECT_EQ(std::filesystem::file_size(path_), 8U);
}

TEST_F(Socket, TheSuccessorsFileIsNotRemoved) {
  Result<ListeningSocket> first = ListeningSocket::open(path_);
  ASSERT_TRUE(first.ok());
  std::filesystem::remove(path_);
  const Result<ListeningSocket> second = ListeningSocket::open(path_);
  ASSERT_TRUE(second.ok());
  { const ListeningSocket gone = std::move(first).value(); }
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(Socket, APathThatIsTooLongIsAnError) {
  const Result<ListeningSocket> socket = ListeningSocket::open(directory_ + "/" + std::string(120, 'x'));
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.error().code(), ENAMETOOLONG);
}

}  // namespace
}  // namespace swapd::bus
