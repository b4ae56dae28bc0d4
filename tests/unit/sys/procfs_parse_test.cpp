#include "sys/procfs/procfs_parse.h"

#include "sys/sched/freezer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

namespace swapd::sys {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view stat_tail =
    " S 1 7 9 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 1 0 123456 1000 10 18446744073709551615 1 1 0 0 0 0 0 0 65536 0 0 0 "
    "17 "
    "3 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

TEST(ParseStat, AnOrdinaryLine) {
  const auto out = parse::stat("42 (sleep)" + std::string(stat_tail));
  ASSERT_TRUE(out);
  EXPECT_STREQ(out->comm.data(), "sleep");
  EXPECT_EQ(out->state, 'S');
  EXPECT_EQ(out->ppid, 1);
  EXPECT_EQ(out->session, 9);
  EXPECT_EQ(out->start_time, 123456U);
  EXPECT_EQ(out->processor, 3);
}

TEST(ParseStat, WhoIsAlive) {
  const std::string one = "42 (sleep)" + std::string(stat_tail);
  EXPECT_TRUE(parse::stat(one)->alive());
  std::string zombie = one, exiting = one;
  zombie.replace(zombie.find(" S "), 3, " Z ");
  EXPECT_FALSE(parse::stat(zombie)->alive());
  exiting.replace(exiting.find("4194304"), 7, "4194308");  // PF_EXITING is 4
  EXPECT_FALSE(parse::stat(exiting)->alive());
}

TEST(ParseStat, ACommThatLooksLikeTheRest) {
  for (const std::string comm : {") R 1 (x", "a b)", "(((", ")\n2 (", "\n", ""}) {
    const auto out = parse::stat("42 (" + comm + ")" + std::string(stat_tail));
    ASSERT_TRUE(out) << comm;
    EXPECT_EQ(comm, out->comm.data());
    EXPECT_EQ(out->start_time, 123456U) << comm;
  }
}

TEST(ParseStat, ALongCommIsCut) {
  const auto out = parse::stat("42 (a-kernel-thread-with-a-long-name)" + std::string(stat_tail));
  ASSERT_TRUE(out);
  EXPECT_STREQ(out->comm.data(), "a-kernel-thread");
}

TEST(ParseStat, WhatIsNoStatLine) {
  for (const char* bad : {"", "42", "42 (x", "42 x) S 1", ")(", "42 (x) SS 1 2 3", "42 (x) S one", "42 (x) S 1 2 3 4"})
    EXPECT_FALSE(parse::stat(bad)) << bad;
}

TEST(ParseSyscall, Blocked) {
  const auto out =
      parse::syscall("230 0x0 0x1 0x7ffe2abfc460 0xffffffffffffffff 0x0 0x5 0x7ffe2abfc448 0x7fedc96ba503\n");
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->in_call);
  EXPECT_FALSE(out->running);
  EXPECT_EQ(out->nr, 230);
  EXPECT_THAT(out->args, ElementsAre(0, 1, 0x7ffe2abfc460, UINT64_MAX, 0, 5));
  EXPECT_FALSE(out->compat);
}

TEST(ParseSyscall, OfA32BitProgram) {
  const auto out = parse::syscall("3 0x0 0xffb1c46c 0x1 0x0 0x0 0x0 0xffb1c408 0xf7f0a559\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->nr, 3);
  EXPECT_TRUE(out->compat);
}

TEST(ParseSyscall, RunningAndOutsideACall) {
  EXPECT_TRUE(parse::syscall("running\n")->running);
  const auto fault = parse::syscall("-1 0x7ffe2abfc448 0x7fedc96ba503\n");
  ASSERT_TRUE(fault);
  EXPECT_FALSE(fault->in_call);
  EXPECT_FALSE(fault->running);
  EXPECT_EQ(fault->nr, -1);
}

TEST(ParseSyscall, WhatIsNone) {
  for (const char* bad : {"", "\n", "x", "0", "0 0x1 0x2", "0 1 2 3 4 5 6", "0 0x 0x 0x 0x 0x 0x", "99999999999 0x1"})
    EXPECT_FALSE(parse::syscall(bad)) << bad;
}

TEST(ParseLock, EachType) {
  const auto flock = parse::lock("1: FLOCK  ADVISORY  WRITE 7597 fe:00:9977919 0 EOF");
  ASSERT_TRUE(flock);
  EXPECT_EQ(flock->type, LockLine::Type::flock);
  EXPECT_TRUE(flock->write);
  EXPECT_FALSE(flock->waiting);
  EXPECT_EQ(flock->pid, 7597);
  EXPECT_EQ(flock->dev, makedev(0xfe, 0));
  EXPECT_EQ(flock->ino, 9977919U);
  EXPECT_EQ(flock->last, UINT64_MAX);

  const auto waiting = parse::lock("12: -> POSIX  ADVISORY  READ  33 00:2a:7 5 14");
  ASSERT_TRUE(waiting);
  EXPECT_TRUE(waiting->waiting);
  EXPECT_FALSE(waiting->write);
  EXPECT_EQ(waiting->type, LockLine::Type::posix);
  EXPECT_EQ(waiting->first, 5U);
  EXPECT_EQ(waiting->last, 14U);

  EXPECT_EQ(parse::lock("3: OFDLCK ADVISORY  WRITE -1 08:01:7 0 0")->type, LockLine::Type::ofd);
  EXPECT_EQ(parse::lock("3: LEASE  ACTIVE    READ  5 08:01:7 0 EOF")->type, LockLine::Type::lease);
  EXPECT_EQ(parse::lock("3: SOMETHING NEW WRITE 5 08:01:7 0 EOF")->type, LockLine::Type::other);
}

TEST(ParseLock, WhatIsNone) {
  for (const char* bad : {"", "1:", "FLOCK ADVISORY WRITE 1 1:1:1 0 EOF", "1: POSIX ADVISORY WRITE 5 <none>:0 0 EOF",
                          "1: POSIX ADVISORY WRITE x 08:01:7 0 EOF", "1: POSIX ADVISORY WRITE 5 08:01 0 EOF",
                          "1: POSIX ADVISORY WRITE 5 08:01:7", "1: POSIX ADVISORY WRITE 5 08:01:7 0 x"})
    EXPECT_FALSE(parse::lock(bad)) << bad;
}

TEST(ParseLock, BadLinesAreLeftOut) {
  EXPECT_EQ(
      parse::locks("1: FLOCK ADVISORY WRITE 1 1:1:1 0 EOF\nnonsense\n\n2: FLOCK ADVISORY WRITE 2 1:1:1 0 EOF").size(),
      2U);
}

TEST(ParseFdInfo, AnEpollSet) {
  const auto out = parse::fdinfo(
      "pos:\t0\nflags:\t02000002\nmnt_id:\t17\nino:\t1030\n"
      "tfd:        3 events:       19 data:                3  pos:0 ino:32ed sdev:f\n"
      "tfd:       77 events: 80000004 data: ffffffffffffffff  pos:-5 ino:5 sdev:fe00000\n");
  EXPECT_EQ(out.flags, 02000002U);
  ASSERT_EQ(out.epoll.size(), 2U);
  EXPECT_EQ(out.epoll[0].fd, 3);
  EXPECT_EQ(out.epoll[0].events, 0x19U);
  EXPECT_EQ(out.epoll[0].ino, 0x32edU);
  EXPECT_EQ(out.epoll[0].dev, makedev(0, 15));
  EXPECT_EQ(out.epoll[1].dev, makedev(0xfe, 0));
  EXPECT_EQ(out.epoll[1].events, 0x80000004U);
}

TEST(ParseFdInfo, SpecialDescriptors) {
  EXPECT_EQ(parse::fd_numbers("pos:\t0\neventfd-count:                0\neventfd-id: 12\n").eventfd_id, 12);
  EXPECT_EQ(parse::fd_numbers("ino:\t91\ntty-index:\t4\n").tty_index, 4);
  EXPECT_EQ(parse::fd_numbers("Pid:\t7597\nNSpid:\t7597\t2\n").pid, 7597);
  EXPECT_EQ(parse::fd_numbers("Pid:\t-1\n").pid, -1);
  EXPECT_TRUE(parse::fd_numbers("sigmask:\t0000000000000200\n").signalfd);
  const FdNumbers none = parse::fd_numbers("pos:\t0\neventfd-id: x\ntty-index:\nPid");
  EXPECT_EQ(none.eventfd_id, -1);
  EXPECT_EQ(none.tty_index, -1);
  EXPECT_EQ(none.pid, -1);
  EXPECT_FALSE(none.signalfd);
}

TEST(ParseFdInfo, LocksOfTheDescriptor) {
  const auto out = parse::fdinfo("pos:\t25\nflags:\t02\nlock:\t1: OFDLCK ADVISORY  READ -1 fe:00:9 3 4\nlock:\tx\n");
  EXPECT_EQ(out.pos, 25U);
  ASSERT_EQ(out.locks.size(), 1U);
  EXPECT_EQ(out.locks[0].type, LockLine::Type::ofd);
}

TEST(ParseEpollTarget, OldAndBrokenLines) {
  const auto old = parse::epoll_target("tfd:        3 events:       19 data:                3");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->ino, 0U);
  for (const char* bad : {"", "tfd:", "tfd: x events: 1", "tfd: 3", "tfd: 3 events: zz", "tfd: 3 events: 1 ino:5",
                          "tfd: 3 events: 1 ino:x sdev:1", "tfd: 99999999999 events: 1"})
    EXPECT_FALSE(parse::epoll_target(bad)) << bad;
}

TEST(ParseMapping, SharedAndPrivate) {
  const auto out = parse::mapping("7f10-7f30 rw-s 00001000 00:01 2049                 /dev/zero (deleted)");
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->shared);
  EXPECT_EQ(out->start, 0x7f10U);
  EXPECT_EQ(out->end, 0x7f30U);
  EXPECT_EQ(out->offset, 0x1000U);
  EXPECT_EQ(out->dev, makedev(0, 1));
  EXPECT_EQ(out->ino, 2049U);
  EXPECT_FALSE(parse::mapping("7f10-7f30 rw-p 0 00:00 0")->shared);
  for (const char* bad : {"", "7f10", "7f10-", "7f10-7f30 rw", "7f10-7f30 rw-p x 00:00 0", "7f10-7f30 rw-p 0 00 0"})
    EXPECT_FALSE(parse::mapping(bad)) << bad;
}

TEST(ParseAutogroup, GoodAndBad) {
  const auto out = parse::autogroup("/autogroup-52 nice -5\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->id, 52);
  EXPECT_EQ(out->nice, -5);
  for (const char* bad : {"", "/", "/autogroup- nice 0", "/autogroup-1", "/user.slice"})
    EXPECT_FALSE(parse::autogroup(bad));
}

TEST(ParseExe, IsTheFileAlsoWhereItHasBeenReplaced) {
  EXPECT_EQ(parse::program_file("/bin/true"), "/bin/true");
  EXPECT_EQ(parse::program_file("/bin/true (deleted)"), "/bin/true");
  EXPECT_EQ(parse::program_file("/bin/(deleted)"), "/bin/(deleted)");
  EXPECT_EQ(parse::program_file(""), "");
}

TEST(ParseStatus, Capabilities) {
  EXPECT_EQ(parse::capabilities("CapInh:\t1\nCapEff:\t000001ffffffffff\nCapBnd:\t2\n"), 0x1ffffffffffU);
  EXPECT_EQ(parse::capabilities("Name:\tCapEff: 7\nCapEff:\t0\n"), 0U);
  for (const char* none : {"", "CapEff:", "CapEff:\tx", "CapEf:\t1"}) EXPECT_FALSE(parse::capabilities(none)) << none;
}

TEST(ParseStatus, SignalsThatInterruptAreThoseThatAreNotBlocked) {
  const auto found = parse::interruption(
      "TracerPid:\t42\nSigQ:\t1/2\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000004006\n"
      "SigBlk:\t0000000000000002\nSigIgn:\t0\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->signals, 0x4005U);
  EXPECT_EQ(found->tracer, 42);
  for (const char* none : {"", "TracerPid:\t0\nSigPnd:\t1\nShdPnd:\t2\n", "SigPnd:\t1\nShdPnd:\t0\nSigBlk:\t0\n",
                           "TracerPid:\t0\nSigPnd:\tx\nShdPnd:\t0\nSigBlk:\t0\n",
                           "TracerPid:\t99999999999\nSigPnd:\t1\nShdPnd:\t0\nSigBlk:\t0\n"})
    EXPECT_FALSE(parse::interruption(none)) << none;
}

TEST(ParseCgroup, WhereItCanBeFrozen) {
  const auto groups = parse::freezer_groups("6:freezer:/a\n4:memory:/m\n0::/system.slice/x.service\n");
  EXPECT_EQ(groups.v1, "/a");
  EXPECT_EQ(groups.v2, "/system.slice/x.service");
  EXPECT_EQ(parse::freezer_groups("6:cpu,freezer,pids:/b c\n").v1, "/b c");
  EXPECT_EQ(parse::freezer_groups("6:freezer:/\n0::/\n").v1, "") << "the root";
  EXPECT_EQ(parse::freezer_groups("6:freezer:/\n0::/\n").v2, "");
  for (const char* none : {"", "6:freezer:/../x\n0::/..\n", "6:freezer", "0::\n", ":::"}) {
    EXPECT_EQ(parse::freezer_groups(none).v1, std::nullopt) << none;
    EXPECT_EQ(parse::freezer_groups(none).v2, std::nullopt) << none;
  }
  // A name that looks like one of another namespace's, in a part of the tree that is its user's.
  EXPECT_EQ(parse::freezer_groups("0::/user.slice/..x/..\n").v2, "/user.slice/..x/..");
  EXPECT_EQ(parse::freezer_groups("0::/..x\n").v2, "/..x");
}

TEST(ParseCgroup, IsWhereSystemdHasIt) {
  EXPECT_EQ(parse::unit_cgroup("0::/system.slice/cron.service\n"), "/system.slice/cron.service");
  EXPECT_EQ(parse::unit_cgroup("3:cpu,cpuacct:/a:b\n1:name=systemd:/init.scope\n0::/v2\n"), "/init.scope");
  EXPECT_EQ(parse::unit_cgroup("0::/a:b"), "/a:b");
  for (const char* none : {"", "\n", "x", "0:", "3:cpu:/a", "10::/a", "1:name=other:/a"})
    EXPECT_EQ(parse::unit_cgroup(none), "") << none;
}

TEST(ParseStatus, NumbersOfAKey) {
  const std::string_view text = "Name:\tUid:\nTgid:\t5\nUid:\t0\t1000\t0\t0\nNSpid:\t5\t2\n";
  EXPECT_THAT(parse::status_numbers(text, "Uid"), ElementsAre(0, 1000, 0, 0));
  EXPECT_THAT(parse::status_numbers(text, "NSpid"), ElementsAre(5, 2));
  EXPECT_THAT(parse::status_numbers(text, "Gid"), IsEmpty());
  EXPECT_THAT(parse::pids("12 13 14 "), ElementsAre(12, 13, 14));
  EXPECT_THAT(parse::pids(""), IsEmpty());
}

TEST(NamespaceInode, IsTheNumberInTheLink) {
  EXPECT_EQ(parse::namespace_inode("ipc:[4026531839]"), 4026531839U);
  for (const char* odd : {"", "ipc", "ipc:[", "ipc:[]", "ipc:[12", "ipc:12]"})
    EXPECT_EQ(parse::namespace_inode(odd), std::nullopt) << odd;
}

}  // namespace
}  // namespace swapd::sys
