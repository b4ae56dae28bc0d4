// The place in the kernel where a thread sleeps, and what follows from it.
#include "observe/resolve/kernel_waits.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <string>

namespace swapd::observe {
namespace {

// As kernel 6.18 shows them; the functions of its locks are left out by the kernel.
constexpr auto file_lock =
    "[<0>] ext4_buffered_write_iter+0x31/0x140\n[<0>] vfs_write+0x29c/0x4c0\n[<0>] __x64_sys_pwrite64+0xa3/0xe0\n"
    "[<0>] do_syscall_64+0x71/0x290\n[<0>] entry_SYSCALL_64_after_hwframe+0x76/0x7e\n";
constexpr auto preempted_writer =
    "[<0>] generic_perform_write+0x151/0x2b0\n[<0>] ext4_buffered_write_iter+0x68/0x140\n[<0>] vfs_write+0x29c/0x4c0\n"
    "[<0>] do_syscall_64+0x71/0x290\n[<0>] entry_SYSCALL_64_after_hwframe+0x76/0x7e\n";
constexpr auto disk =
    "[<0>] folio_wait_bit_common+0x131/0x2f0\n[<0>] filemap_read+0x1/0x2\n[<0>] vfs_read+0x29c/0x4c0\n"
    "[<0>] do_syscall_64+0x71/0x290\n";
constexpr auto fuse_request =
    "[<0>] request_wait_answer+0x11a/0x210\n[<0>] __fuse_simple_request+0xd2/0x2b0\n[<0>] fuse_do_getattr+0x1/0x2\n"
    "[<0>] do_syscall_64+0x71/0x290\n";
constexpr auto fuse_page =
    "[<0>] folio_wait_bit_common+0x131/0x2f0\n[<0>] filemap_read+0x1/0x2\n[<0>] fuse_file_read_iter+0x1/0x2\n";
constexpr auto fuse_daemon =
    "[<0>] fuse_dev_do_read+0x2d2/0x8f0\n[<0>] fuse_dev_read+0x5e/0x90\n[<0>] vfs_read+0x1/0x2\n";
constexpr auto in_user_space =
    "[<0>] irqentry_exit_to_user_mode+0x11f/0x1b0\n[<0>] asm_sysvec_apic_timer_interrupt+0x1a/0x20\n";
constexpr auto at_the_end_of_a_call = "[<0>] exit_to_user_mode_loop+0x1/0x2\n[<0>] do_syscall_64+0x71/0x290\n";

TEST(Stall, ASleepThatIsNoDevicesIsALocks) {
  EXPECT_EQ(stall_in(file_lock, true), Stall::lock);
  EXPECT_EQ(stall_in(file_lock, false), Stall::none) << "who sleeps so can be woken by anything";
  EXPECT_EQ(stall_in(disk, true), Stall::device);
  EXPECT_EQ(stall_in("", true), Stall::none);
  EXPECT_EQ(stall_in("[<0>] __refrigerator+0x1/0x2\n", true), Stall::none);
}

TEST(Stall, AFuseDaemonIsWaitedForInAnyCallAndItsPages) {
  EXPECT_EQ(stall_in(fuse_request, false), Stall::fuse);
  EXPECT_EQ(stall_in(fuse_request, true), Stall::fuse);
  EXPECT_EQ(stall_in(fuse_page, true), Stall::fuse);
  EXPECT_EQ(stall_in(fuse_daemon, false), Stall::none) << "the daemon itself waits for requests";
}

TEST(Stall, WhoIsPreemptedInACallMayHoldALock) {
  EXPECT_TRUE(preempted_in_call(preempted_writer));
  EXPECT_FALSE(preempted_in_call(in_user_space));
  EXPECT_FALSE(preempted_in_call(at_the_end_of_a_call));
  EXPECT_FALSE(preempted_in_call(""));
}

constexpr auto mounts =
    "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "42 27 0:39 / /mnt/media rw,nosuid - fuse.mergerfs a:b rw,user_id=0\n"
    "43 42 0:40 / /mnt/media/tmp rw - tmpfs tmpfs rw\n"
    "44 27 0:41 / /mnt/a\\040b rw - fuse x rw\n";

TEST(FuseMount, IsThatOfTheLongestPath) {
  EXPECT_EQ(fuse_mount_of(mounts, "/mnt/media/film"), makedev(0, 39));
  EXPECT_EQ(fuse_mount_of(mounts, "/mnt/media"), makedev(0, 39));
  EXPECT_EQ(fuse_mount_of(mounts, "/mnt/a b/c"), makedev(0, 41));
  EXPECT_EQ(fuse_mount_of(mounts, "/mnt/media/tmp/x"), std::nullopt);
  EXPECT_EQ(fuse_mount_of(mounts, "/mnt/mediafile"), std::nullopt);
  EXPECT_EQ(fuse_mount_of(mounts, "/etc/passwd"), std::nullopt);
  EXPECT_EQ(fuse_mount_of("nonsense\n1 2 x:y /\n", "/"), std::nullopt);
}

TEST(FuseMount, TheOnlyOne) {
  EXPECT_EQ(only_fuse_mount(mounts), std::nullopt) << "there are two";
  EXPECT_EQ(only_fuse_mount("42 27 0:39 / /mnt rw - fuseblk /dev/sda rw\n"), makedev(0, 39));
}

TEST(FuseMount, ConnectionsAreCountedAsTheKernelCountsDevices) {
  EXPECT_EQ(fuse_connection_of(makedev(0, 39)), 39U);
  EXPECT_EQ(fuse_connection_of(makedev(8, 1)), (8U << 20U) + 1);
}

TEST(Paths, AreJoinedAsText) {
  EXPECT_EQ(joined("/a/b", "c"), "/a/b/c");
  EXPECT_EQ(joined("/a/b", "../c/./d"), "/a/c/d");
  EXPECT_EQ(joined("/a/b", "/c"), "/c");
  EXPECT_EQ(joined("/a", "../../.."), "/");
  EXPECT_EQ(joined("", ""), "/");
}

TEST(FileArgs, OfCallsOnFiles) {
  EXPECT_EQ(file_args(SYS_stat).path, 0);
  EXPECT_EQ(file_args(SYS_newfstatat).path, 1);
  EXPECT_EQ(file_args(SYS_newfstatat).directory, 0);
  EXPECT_EQ(file_args(SYS_getdents64).fd, 0);
  EXPECT_EQ(file_args(SYS_futex).path, -1);
  EXPECT_EQ(file_args(SYS_futex).fd, -1);
  EXPECT_TRUE(changes_memory(-1));
  EXPECT_FALSE(changes_memory(SYS_read));
}

TEST(KernelWaits, AreForgottenOnceTheyAreShort) {
  KernelWaits waits;
  const Resource file{ResourceKind::kernel, {1, 2}};
  EXPECT_TRUE(waits.empty());
  waits.was_long(file);
  EXPECT_TRUE(waits.knows(file));
  EXPECT_FALSE(waits.knows_fuse());
  for (int i = 1; i < KernelWaits::forgotten_after; ++i) waits.was_short(file);
  EXPECT_TRUE(waits.knows(file));
  waits.was_long(file);
  for (int i = 1; i < KernelWaits::forgotten_after; ++i) waits.was_short(file);
  EXPECT_TRUE(waits.knows(file)) << "in a row";
  waits.was_short(file);
  EXPECT_FALSE(waits.knows(file));
  EXPECT_TRUE(waits.empty());
}

TEST(KernelWaits, CountTheMountsOfFuse) {
  KernelWaits waits;
  waits.was_long(fuse_files_of(makedev(0, 39)));
  waits.was_long(fuse_files_of(makedev(0, 39)));
  EXPECT_TRUE(waits.knows_fuse());
  for (int i = 0; i < KernelWaits::forgotten_after; ++i) waits.was_short(fuse_files_of(makedev(0, 39)));
  EXPECT_TRUE(waits.knows_fuse()) << "they are short because its daemon is lent to";
}

TEST(KernelWaits, AreBounded) {
  KernelWaits waits;
  for (std::uint64_t inode = 1; inode <= 2 * KernelWaits::max_known; ++inode)
    waits.was_long({ResourceKind::kernel, {1, inode}});
  std::size_t known = 0;
  for (std::uint64_t inode = 1; inode <= 2 * KernelWaits::max_known; ++inode)
    known += waits.knows({ResourceKind::kernel, {1, inode}}) ? 1 : 0;
  EXPECT_EQ(known, KernelWaits::max_known);
}

}  // namespace
}  // namespace swapd::observe
