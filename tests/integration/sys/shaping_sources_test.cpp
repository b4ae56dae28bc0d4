// What shaping asks the kernel: what a thread has moved, which disk a file is on, which link a socket talks over.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "supervised.h"
#include "sys/bpf/exit_io.h"
#include "sys/bpf/net_io.h"
#include "sys/netlink/delay_accounting.h"
#include "sys/netlink/socket_route.h"
#include "sys/process/self_process.h"
#include "sys/procfs/block_devices.h"
#include "sys/procfs/io_counters.h"

namespace swapd::sys {
namespace {

// A file on a disk: the source folder, where the build may be in memory.
std::string disk_file() { return std::string(SWAPD_SOURCE_DIR) + "/CMakeLists.txt"; }

TEST(ThreadIo, CountsWhatThisThreadReadsAndWrites) {
  const auto io = ThreadIo::open("/proc", own_tid());
  ASSERT_TRUE(io) << io.error().text();
  const Fd file(::open(disk_file().c_str(), O_RDONLY | O_CLOEXEC)), null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  std::array<char, 100> bytes{};
  const auto before = io->read();
  ASSERT_TRUE(before);
  const auto still = io->read();
  ASSERT_TRUE(still);
  ASSERT_EQ(::read(file.get(), bytes.data(), bytes.size()), 100);
  ASSERT_EQ(::write(null.get(), bytes.data(), 70), 70);
  const auto after = io->read();
  ASSERT_TRUE(after);
  // A look reads text, which is longer by a digit where a count has come to a power of ten meanwhile.
  constexpr std::uint64_t counts = 7;  // a line each
  const std::uint64_t own_look = still->read_chars - before->read_chars;
  EXPECT_GE(after->read_chars - still->read_chars, own_look + 100);
  EXPECT_LE(after->read_chars - still->read_chars, own_look + 100 + counts);
  EXPECT_EQ(after->written_chars - still->written_chars, 70U);
}

TEST(ThreadIo, OfAnEndedThreadNothingIsSaid) {
  pid_t tid = 0;
  Result<ThreadIo> io = Error(EIO, "");
  std::thread([&] {
    tid = own_tid();
    io = ThreadIo::open("/proc", tid);
  }).join();
  ASSERT_TRUE(io);
  // To be joined is not yet to be gone.
  EXPECT_TRUE(test::eventually([&] {
    const auto read = io->read();
    return !read && read.error().gone();
  }));
  EXPECT_FALSE(ThreadIo::open("/proc", tid).ok());
}

TEST(BlockDevices, AFileIsOnItsDisk) {
  const BlockDevices devices;
  struct stat st {};
  ASSERT_EQ(::stat(disk_file().c_str(), &st), 0);
  const auto chain = devices.chain(st.st_dev);
  if (chain.empty()) GTEST_SKIP() << "the source folder is on no disk";
  for (const dev_t one : chain) EXPECT_NE(devices.name(one).find_first_not_of("0123456789:"), std::string::npos);
  const auto found = devices.find(disk_file());
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(*found, chain.front());
  const std::string number = std::to_string(::major(*found)) + ":" + std::to_string(::minor(*found));
  EXPECT_EQ(*devices.find(number), *found);
}

TEST(BlockDevices, WhatIsOnNoDiskIsRefusedWithTheReason) {
  const BlockDevices devices;
  const auto text = [&](const std::string& what) {
    const auto found = devices.find(what);
    return found ? std::string() : found.error().text();
  };
  EXPECT_NE(text("/proc/version").find("on no disk (proc)"), std::string::npos) << text("/proc/version");
  EXPECT_NE(text("/no/such").find("/no/such"), std::string::npos);
  EXPECT_NE(text("300:1").find("no disk 300:1"), std::string::npos);
  EXPECT_NE(text("vda").find("neither"), std::string::npos);
  EXPECT_NE(text("8:").find("neither"), std::string::npos);
}

// Partitions, volumes and a loop device, as sysfs shows them.
TEST(BlockDevices, TheChainGoesDownToTheDisk) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("swapd-sysfs-" + std::to_string(::getpid()));
  const auto disk = [&](const std::string& at, const std::string& number) {
    fs::create_directories(root / "devices" / at / "slaves");
    fs::create_directories(root / "dev/block");
    fs::create_directory_symlink(root / "devices" / at, root / "dev/block" / number);
    std::ofstream(root / "devices" / at / "dev") << number << '\n';
  };
  disk("sda", "8:0");
  disk("sda/sda1", "8:1");
  std::ofstream(root / "devices/sda/sda1/partition") << "1\n";
  disk("dm-0", "253:0");
  fs::create_directory_symlink(root / "devices/sda/sda1", root / "devices/dm-0/slaves/sda1");
  const BlockDevices devices(root, "/proc");
  EXPECT_EQ(devices.chain(::makedev(253, 0)),
            (std::vector<dev_t>{::makedev(253, 0), ::makedev(8, 1), ::makedev(8, 0)}));
  EXPECT_EQ(devices.name(::makedev(8, 1)), "sda1");
  EXPECT_TRUE(devices.chain(::makedev(9, 9)).empty());
  fs::remove_all(root);
}

class Links : public testing::Test {
 protected:
  static Fd udp() { return Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)); }
  static sockaddr_in at(const char* text) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(9);
    ::inet_pton(AF_INET, text, &address.sin_addr);
    return address;
  }
  const unsigned loopback = ::if_nametoindex("lo");
};

TEST_F(Links, AConnectedSocketHasItsPeersRoute) {
  const Fd socket = udp();
  const sockaddr_in peer = at("127.0.0.1");
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer), 0);
  const auto link = link_of(socket.get());
  ASSERT_TRUE(link);
  EXPECT_TRUE(link->inet);
  EXPECT_EQ(link->index, loopback);
  EXPECT_EQ(link_name(link->network_namespace, link->index), "lo");
}

TEST_F(Links, ABoundOneThatOfItsAddress) {
  const Fd socket = udp();
  sockaddr_in own = at("127.0.0.1");
  own.sin_port = 0;
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  EXPECT_EQ(link_of(socket.get())->index, loopback);
}

TEST_F(Links, AnUnboundOneThatOfWhereItSends) {
  const Fd socket = udp();
  EXPECT_EQ(link_of(socket.get())->index, 0U);
  const sockaddr_in to = at("127.0.0.1");
  EXPECT_EQ(link_of(socket.get(), std::as_bytes(std::span(&to, 1)))->index, loopback);
  EXPECT_EQ(link_of(socket.get(), std::as_bytes(std::span(&to, 1)).first(3))->index, 0U) << "cut off";
}

TEST_F(Links, ALocalSocketHasNone) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(link_of(socket.get())->inet);
  EXPECT_EQ(link_named("no-such-link").error().code(), ENODEV);
  EXPECT_EQ(link_named("lo")->index, loopback);
}

TEST(NetIo, CountsBytesByWhateverCall) {
  const auto net = NetIo::open();
  if (!net) GTEST_SKIP() << net.error().text();
  ASSERT_TRUE((*net)->count(own_tid()));
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  const Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  const Fd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  std::array<char, 1000> bytes{};
  ASSERT_EQ(::write(client.get(), bytes.data(), 300), 300);
  ASSERT_EQ(::send(client.get(), bytes.data(), 200, 0), 200);
  ASSERT_EQ(::recv(server.get(), bytes.data(), 500, MSG_WAITALL | MSG_PEEK), 500);
  auto counters = (*net)->read(own_tid());
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->sent, 500U);
  EXPECT_EQ(counters->received, 0U) << "it was only looked at";
  ASSERT_EQ(::read(server.get(), bytes.data(), 1000), 500);
  EXPECT_EQ((*net)->read(own_tid())->received, 500U);
  (*net)->forget(own_tid());
  EXPECT_EQ((*net)->read(own_tid()).error().code(), ENOENT);
}

TEST(LastIo, TellsWhatAThreadHadMovedWhenItEnded) {
  const auto last = LastIo::open();
  if (!last) GTEST_SKIP() << last.error().text();
  const LastIo::Owner own = (*last)->add(), other = (*last)->add();
  pid_t tid = 0;
  LastIo::Serial serial = 0;
  IoCounters before;
  std::thread([&] {
    tid = own_tid();
    serial = (*last)->ask(tid, own).value_or(0);
    const auto io = ThreadIo::open("/proc", tid);
    before = io ? io->read().value_or({}) : IoCounters();
    const Fd file(::open(disk_file().c_str(), O_RDONLY | O_CLOEXEC)), null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    std::array<char, 100> bytes{};
    (void)!::read(file.get(), bytes.data(), bytes.size());
    (void)!::write(null.get(), bytes.data(), 70);
  }).join();
  ASSERT_NE(serial, 0U);
  std::vector<LastIo::Ended> ended;
  EXPECT_TRUE(test::eventually([&] {  // to be joined is not yet to have ended
    EXPECT_TRUE((*last)->take(other).empty());
    ended = (*last)->take(own);
    return !ended.empty();
  }));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].tid, tid);
  EXPECT_EQ(ended[0].serial, serial);
  EXPECT_EQ(ended[0].in_all.written_chars - before.written_chars, 70U);
  EXPECT_GE(ended[0].in_all.read_chars - before.read_chars, 100U) << "and its look at itself";
  EXPECT_EQ(ended[0].in_all.calls - before.calls, 3U);
  EXPECT_TRUE((*last)->take(own).empty()) << "told once";
}

TEST(LastIo, OfAThreadThatIsForgottenNothingIsTold) {
  const auto last = LastIo::open();
  if (!last) GTEST_SKIP() << last.error().text();
  const LastIo::Owner own = (*last)->add(), gone = (*last)->add();
  pid_t forgotten = 0, told = 0;
  std::thread([&] {
    forgotten = own_tid();
    const auto first = (*last)->ask(forgotten, own), second = (*last)->ask(forgotten, own);
    (*last)->forget(forgotten, first.value_or(0));  // another's by now
    (*last)->forget(forgotten, second.value_or(0));
  }).join();
  std::thread([&] {
    told = own_tid();
    const auto first = (*last)->ask(told, gone), second = (*last)->ask(told, own);
    (*last)->forget(told, first.value_or(0));
    (*last)->drop(gone);
    EXPECT_NE(first.value_or(0), second.value_or(0));
  }).join();
  std::vector<LastIo::Ended> ended;
  EXPECT_TRUE(test::eventually([&] {
    for (const LastIo::Ended& one : (*last)->take(own)) ended.push_back(one);
    return !ended.empty();
  }));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].tid, told);
}

// A thread that execs has the id of its process's first one from then on; its own ends without an end.
TEST(LastIo, AnIdThatIsUsedAgainIsNobodysUntilItIsAskedForAgain) {
  const auto last = LastIo::open();
  if (!last) GTEST_SKIP() << last.error().text();
  const LastIo::Owner own = (*last)->add();
  // The id of the next thread, more or less: ids are given in sequence.
  std::atomic<pid_t> tid = 0;
  std::thread([&] { tid = own_tid(); }).join();
  for (pid_t next = tid + 1; next < tid + 200; ++next) ASSERT_TRUE((*last)->ask(next, own));
  for (int i = 0; i < 20; ++i)
    std::thread([&] {
      if (const Fd null{::open("/dev/null", O_WRONLY | O_CLOEXEC)}; ::write(null.get(), "x", 1) != 1) tid = 0;
      tid = own_tid();
    }).join();
  EXPECT_TRUE(test::eventually([&] { return !ThreadIo::open("/proc", tid).ok(); }));
  EXPECT_TRUE((*last)->take(own).empty());
}

// Only threads that are born while it is on are accounted for.
TEST(TaskDelays, AThreadThatReadsFromTheDiskHasWaited) {
  struct Sysctl {
    ~Sysctl() {
      if (before >= 0) std::ofstream(path) << before;
    }
    const char* path = "/proc/sys/kernel/task_delayacct";
    int before = -1;
  } sysctl;
  if (!(std::ifstream(sysctl.path) >> sysctl.before) || !(std::ofstream(sysctl.path) << 1 << std::flush))
    GTEST_SKIP() << "delay accounting cannot be switched on";
  auto delays = TaskDelays::open();
  ASSERT_TRUE(delays) << delays.error().text();
  std::string path = "/var/tmp/swapd-delays-XXXXXX";
  const Fd file(::mkostemp(path.data(), O_CLOEXEC));
  ::unlink(path.c_str());
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < 8; ++i) ASSERT_EQ(::write(file.get(), block.data(), block.size()), 1 << 20);
  ::fsync(file.get());
  std::atomic<bool> go_on = true;
  std::atomic<pid_t> tid = 0;
  std::thread reader([&] {
    tid = ::gettid();
    std::string to(1 << 20, ' ');
    while (go_on) {
      ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
      for (off_t at = 0; at < 8 << 20; at += 1 << 20) (void)!::pread(file.get(), to.data(), to.size(), at);
    }
  });
  EXPECT_TRUE(test::eventually([&] {
    const auto waited = tid == 0 ? Result<Duration>(Error(ESRCH, "")) : delays->block_io(tid);
    return waited && *waited > Duration::zero();
  }));
  go_on = false;
  reader.join();
  // To be joined is not yet to be gone.
  EXPECT_TRUE(test::eventually([&] {
    const auto waited = delays->block_io(tid);
    return !waited && waited.error().code() == ESRCH;
  }));
}

}  // namespace
}  // namespace swapd::sys
