// The lines are those of proc_pid_mountinfo(5) and of a machine with overlayfs and FUSE.
#include "sys/procfs/mountinfo.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

namespace swapd::sys {
namespace {

TEST(Mountinfo, ALineHasItsFields) {
  const auto mount =
      parse_mount("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->id, 36U);
  EXPECT_EQ(mount->dev, makedev(98, 0));
  EXPECT_EQ(mount->root, "/mnt1");
  EXPECT_EQ(mount->point, "/mnt2");
  EXPECT_EQ(mount->type, "ext3");
  EXPECT_EQ(mount->source, "/dev/root");
  EXPECT_EQ(mount->options, "rw,errors=continue");
}

TEST(Mountinfo, TagsMayBeAbsent) {
  const auto mount = parse_mount("22 1 0:5 / /proc rw - proc proc rw");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->type, "proc");
  EXPECT_EQ(mount->source, "proc");
}

TEST(Mountinfo, EscapesAreBytes) {
  const auto mount = parse_mount("41 31 0:38 /\\040r /mnt/a\\040b\\134c rw - fuse.sshfs h\\011x rw");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->root, "/ r");
  EXPECT_EQ(mount->point, "/mnt/a b\\c");
  EXPECT_EQ(mount->source, "h\tx");
}

TEST(Mountinfo, ABackslashThatIsNoEscapeStays) {
  EXPECT_EQ(parse_mount("1 2 0:1 / /a\\09x\\04 rw - t s o")->point, "/a\\09x\\04");
  EXPECT_EQ(parse_mount("1 2 0:1 / /a\\777 rw - t s o")->point, "/a\\777");
}

TEST(Mountinfo, OtherTextIsNoMount) {
  for (const char* line : {"", "garbage", "- - -", "1 2 x:y /", "1 2 0:1 / /c rw", "1 2 0:1 / /c rw -",
                           "x 2 0:1 / /c rw - t s o", "1 2 0:1x / /c rw - t s o", "1 2 01 / /c rw - t s o"})
    EXPECT_FALSE(parse_mount(line)) << line;
}

TEST(Mountinfo, ATextGivesItsMountsInOrderWithoutTheRest) {
  const auto mounts = parse_mountinfo("1 2 0:1 / /a rw - t s o\ngarbage\n\n3 2 0:2 / /b rw - t s o");
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[0].point, "/a");
  EXPECT_EQ(mounts[1].point, "/b");
  EXPECT_TRUE(parse_mountinfo("").empty());
}

TEST(Mountinfo, AnOptionHasItsValueWithoutEscapes) {
  const char* options = "rw,lowerdir=/l,upperdir=/u\\040p,workdir=/w";
  EXPECT_EQ(mount_option(options, "upperdir"), "/u p");
  EXPECT_EQ(mount_option(options, "upper"), "");
  EXPECT_EQ(mount_option(options, "workdir"), "/w");
  EXPECT_EQ(mount_option(options, "rw"), "");
  EXPECT_EQ(mount_option("", "rw"), "");
}

}  // namespace
}  // namespace swapd::sys
