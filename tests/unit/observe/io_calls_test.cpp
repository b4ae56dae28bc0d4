// How many bytes a call asks to move.
#include "observe/io/io_calls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>

#include "observe/resolve/syscall_table.h"

namespace swapd::observe {
namespace {

using Args = std::array<std::uint64_t, 6>;

// Our own memory stands for the target's.
Status own_memory(std::uint64_t address, void* out, std::size_t size) {
  if (address < 4096) return Error(EFAULT, "vm_readv");
  std::memcpy(out, reinterpret_cast<const void*>(address), size);  // NOLINT(performance-no-int-to-ptr)
  return Done{};
}

std::int64_t asks(std::int32_t nr, const Args& args) {
  const IoCall* call = io_call(nr);
  if (call == nullptr) return -1;
  const auto bytes = asked(*call, args, own_memory);
  return bytes ? *bytes : -bytes.error().code();
}

std::uint64_t at(const void* data) { return reinterpret_cast<std::uint64_t>(data); }

TEST(IoCalls, ACountIsWhatItSays) {
  EXPECT_EQ(asks(SYS_read, {3, 0, 4096}), 4096);
  EXPECT_EQ(asks(SYS_pwrite64, {3, 0, 1, 99}), 1);
  EXPECT_EQ(asks(SYS_sendfile, {4, 3, 0, 1 << 20}), 1 << 20);
  EXPECT_EQ(asks(SYS_write, {3, 0, 0}), 1) << "a call is a token at least";
  EXPECT_EQ(asks(SYS_read, {3, 0, ~0ULL}), 0x7ffff000) << "no call moves more";
  EXPECT_EQ(asks(SYS_fsync, {3}), 1);
  EXPECT_EQ(asks(SYS_getpid, {}), -1);
}

TEST(IoCalls, VectorsAndMessagesAreSummedUp) {
  std::array<iovec, 100> parts{};
  for (iovec& part : parts) part.iov_len = 10;
  EXPECT_EQ(asks(SYS_readv, {3, at(parts.data()), 3}), 30);
  EXPECT_EQ(asks(SYS_pwritev2, {3, at(parts.data()), 0}), 1);
  EXPECT_EQ(asks(SYS_writev, {3, at(parts.data()), 100}), 1000) << "those beyond the 64th are taken for alike";
  msghdr header{.msg_iov = parts.data(), .msg_iovlen = 5};
  EXPECT_EQ(asks(SYS_sendmsg, {3, at(&header)}), 50);
  std::array<mmsghdr, 20> many{};
  for (mmsghdr& one : many) one.msg_hdr = header;
  EXPECT_EQ(asks(SYS_recvmmsg, {3, at(many.data()), 2}), 100);
  EXPECT_EQ(asks(SYS_sendmmsg, {3, at(many.data()), 20}), 1000);
}

// Which link a datagram takes is said by its address, in three ways.
TEST(IoCalls, WhereItSendsTo) {
  const std::string address = "the address of somebody";
  std::array<std::byte, 8> room{};
  const auto to = [&](std::int32_t nr, const Args& args) {
    const std::size_t size = sent_to(*io_call(nr), args, own_memory, room);
    return std::string(reinterpret_cast<const char*>(room.data()), size);
  };
  EXPECT_EQ(to(SYS_sendto, {3, 0, 0, 0, at(address.data()), 5}), "the a");
  EXPECT_EQ(to(SYS_sendto, {3, 0, 0, 0, at(address.data()), 20}), "the addr") << "no more than there is room for";
  EXPECT_EQ(to(SYS_sendto, {3, 0, 0, 0, 0, 16}), "") << "connected";
  std::array<mmsghdr, 2> many{};
  many[0].msg_hdr.msg_name = const_cast<char*>(address.data());
  many[0].msg_hdr.msg_namelen = 5;
  EXPECT_EQ(to(SYS_sendmsg, {3, at(many.data())}), "the a");
  EXPECT_EQ(to(SYS_sendmmsg, {3, at(many.data()), 2}), "the a");
  EXPECT_EQ(to(SYS_sendmsg, {3, 8}), "");
  EXPECT_EQ(to(SYS_recvmsg, {3, at(many.data())}), "") << "what it says is written by the kernel";
  EXPECT_EQ(to(SYS_write, {3, at(address.data()), 5}), "");
}

TEST(IoCalls, WhatCannotBeReadIsAnError) {
  EXPECT_EQ(asks(SYS_readv, {3, 1, 3}), -EFAULT);
  EXPECT_EQ(asks(SYS_sendmsg, {3, 8}), -EFAULT);
  std::array<iovec, 2> huge{iovec{nullptr, ~std::size_t{0}}, iovec{nullptr, ~std::size_t{0}}};
  EXPECT_EQ(asks(SYS_readv, {3, at(huge.data()), 2}), 0x7ffff000);
  EXPECT_GT(asks(SYS_readv, {3, at(huge.data()), 1}), 0);
}

// Linux AIO: what each request says.
TEST(IoCalls, ASubmissionIsItsRequests) {
  std::array<iovec, 2> parts{iovec{nullptr, 100}, iovec{nullptr, 200}};
  std::array<iocb, 4> all{};
  all[0] = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = 5, .aio_nbytes = 4096};
  all[1] = {.aio_lio_opcode = IOCB_CMD_FSYNC, .aio_fildes = 5};
  all[2] = {.aio_lio_opcode = IOCB_CMD_PWRITEV, .aio_fildes = 6, .aio_buf = at(parts.data()), .aio_nbytes = 2};
  all[3] = {.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = 7, .aio_nbytes = 1};
  std::array<std::uint64_t, 5> pointers{at(&all[0]), at(&all[1]), at(&all[2]), at(&all[3]), 8};
  const IoCall& call = *io_call(SYS_io_submit);
  const auto seen = requests(call, {1, 5, at(pointers.data())}, own_memory);
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->size(), 3U) << "what syncs moves nothing, and after one that cannot be read the kernel stops";
  EXPECT_EQ(seen->at(0).fd, 5);
  EXPECT_EQ(seen->at(0).bytes, 4096);
  EXPECT_FALSE(seen->at(0).writes);
  EXPECT_EQ(seen->at(1).bytes, 300);
  EXPECT_TRUE(seen->at(1).writes);
  EXPECT_EQ(seen->at(2).fd, 7);
  EXPECT_FALSE(requests(call, {1, 5, 8}, own_memory));
  EXPECT_TRUE(requests(call, {1, 0, 8}, own_memory)->empty());
}

// From where it reads tells how much a file has left.
TEST(IoCalls, APositionIsSaidOrPointedTo) {
  const std::int64_t offset = 77;
  const auto from = [](std::int32_t nr, const Args& args) { return position(*io_call(nr), args, own_memory); };
  EXPECT_EQ(from(SYS_pread64, {3, 0, 10, 5}), 5);
  EXPECT_EQ(from(SYS_preadv2, {3, 0, 10, ~0ULL}), std::nullopt) << "-1: the descriptor's own";
  EXPECT_EQ(from(SYS_copy_file_range, {3, at(&offset), 4, 0, 10}), 77);
  EXPECT_EQ(from(SYS_sendfile, {4, 3, at(&offset), 10}), 77);
  EXPECT_EQ(from(SYS_sendfile, {4, 3, 0, 10}), std::nullopt);
  EXPECT_EQ(from(SYS_sendfile, {4, 3, 8, 10}), std::nullopt);
  EXPECT_EQ(from(SYS_read, {3, 0, 10}), std::nullopt);
}

// Each once, none that may not be trapped, and with a name.
TEST(IoCalls, TheRulesAreOneForEachCall) {
  std::set<std::int32_t> seen;
  for (const sys::TrapRule& rule : io_rules({.entries = true})) {
    EXPECT_TRUE(seen.insert(rule.nr).second) << rule.nr;
    EXPECT_FALSE(rule.condition.has_value());
    EXPECT_NE(io_call(rule.nr), nullptr);
  }
  for (const long never : {SYS_close, SYS_dup, SYS_clone, SYS_fork, SYS_execve, SYS_exit, SYS_exit_group, SYS_mmap,
                           SYS_rt_sigreturn, SYS_restart_syscall, SYS_seccomp, SYS_kill, SYS_futex})
    EXPECT_FALSE(seen.contains(static_cast<std::int32_t>(never))) << never;
  EXPECT_EQ(io_call(-1), nullptr);
  EXPECT_EQ(io_call(100'000), nullptr);
}

// Calls about directories and inodes are trapped where they count.
TEST(IoCalls, EntriesAreTrappedWhereTheyCount) {
  const auto traps = [](const IoTraps& what, long nr) {
    const auto rules = io_rules(what);
    return std::ranges::find(rules, nr, &sys::TrapRule::nr) != rules.end();
  };
  for (const long nr : {SYS_getdents64, SYS_newfstatat, SYS_openat, SYS_unlinkat, SYS_mkdirat, SYS_renameat2}) {
    EXPECT_FALSE(traps({}, nr)) << nr;
    EXPECT_TRUE(traps({.entries = true}, nr)) << nr;
  }
  EXPECT_TRUE(traps({}, SYS_read));
}

TEST(IoCalls, AnEntryIsReadOrChangedOnADisk) {
  const auto changes = [](long nr, const Args& args) { return changes_entry(*io_call(static_cast<int>(nr)), args); };
  EXPECT_TRUE(changes(SYS_unlinkat, {}));
  EXPECT_FALSE(changes(SYS_getdents64, {}));
  EXPECT_FALSE(changes(SYS_openat, {0, 0, O_RDONLY}));
  EXPECT_TRUE(changes(SYS_openat, {0, 0, O_WRONLY | O_CREAT}));
  const auto of_disk = [](std::string path) {
    path.resize(16);
    return is_of_disk(*io_call(SYS_newfstatat), {static_cast<std::uint64_t>(AT_FDCWD), at(path.data())}, own_memory);
  };
  EXPECT_TRUE(of_disk("a/file"));
  EXPECT_TRUE(of_disk("/usr/bin"));
  EXPECT_FALSE(of_disk("/proc/self/stat"));
  EXPECT_FALSE(of_disk("")) << "the descriptor's own inode is in memory";
  EXPECT_TRUE(is_of_disk(*io_call(SYS_getdents64), {3}, own_memory));
}

}  // namespace
}  // namespace swapd::observe
