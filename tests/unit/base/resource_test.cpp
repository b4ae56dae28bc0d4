// The text forms are a contract (docs/design.md, Contracts): tools outside read them.
#include "base/resource.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace swapd {
namespace {

using enum ResourceKind;

TEST(Resource, TextForms) {
  const std::uint64_t dev = makedev(0xfe, 0x00);
  EXPECT_EQ(text({socket, {12345}}), "socket:12345");
  EXPECT_EQ(text({pipe, {77, 0}}), "pipe:77:r");
  EXPECT_EQ(text({pipe, {77, 1}}), "pipe:77:w");
  EXPECT_EQ(text({fifo, {78, 1, dev}}), "fifo:78:w");
  EXPECT_EQ(text({sysv_msg, {4026531839, 3}}), "sysv-msg:4026531839:3");
  EXPECT_EQ(text({sysv_sem, {4026531839, 0}}), "sysv-sem:4026531839:0");
  EXPECT_EQ(text({posix_mq, {makedev(0, 0x14), 9}}), "posix-mq:00:14:9");
  EXPECT_EQ(text({ResourceKind::flock, {dev, 123, 1}}), "flock:fe:00:123:exclusive");
  EXPECT_EQ(text({ResourceKind::flock, {dev, 123, 0}}), "flock:fe:00:123:shared");
  EXPECT_EQ(text({record_lock, {dev, 123, 0, 9}}), "record-lock:fe:00:123:0:9");
  EXPECT_EQ(text({record_lock, {dev, 123, 5, UINT64_MAX}}), "record-lock:fe:00:123:5:eof");
  EXPECT_EQ(text({ResourceKind::signal, {42, 1000}}), "signal:42");
  EXPECT_EQ(text({futex, {42, 4096, 1000, 0}}), "futex:42:4096");
  EXPECT_EQ(text({futex, {dev, 123, 64, 1}}), "futex:fe:00:123:64");
  EXPECT_EQ(text({ResourceKind::eventfd, {6}}), "eventfd:6");
  EXPECT_EQ(text({pty, {3, 0}}), "pty:3:slave");
  EXPECT_EQ(text({pty, {3, 1}}), "pty:3:master");
  EXPECT_EQ(text({child_exit, {55, 2000}}), "child-exit:55");
  EXPECT_EQ(text({inotify, {77, 3, 5}}), "inotify:77:5");
  EXPECT_EQ(text({kernel_work, {77, 3}}), "kernel-work:77");
  EXPECT_EQ(text({ResourceKind::kernel, {dev, 123}}), "kernel:fe:00:123");
  EXPECT_EQ(text({ResourceKind::kernel, {makedev(0, 0x27)}}), "kernel:00:27:fuse");
  EXPECT_EQ(text({ResourceKind::kernel, {0, 0, 42, 1000}}), "kernel:process:42");
  EXPECT_EQ(text({child_exit, {0, 0, 42, 1000}}), "child-exit:any:42");
  EXPECT_EQ(text({}), "unknown");
}

TEST(Resource, DevicesWithLargeNumbersKeepThem) {
  EXPECT_EQ(text({ResourceKind::flock, {makedev(0x103, 0x1a2b3), 1, 0}}), "flock:103:1a2b3:1:shared");
}

TEST(Resource, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t k = 0; k < resource_kinds; ++k) names.insert(name(static_cast<ResourceKind>(k)));
  EXPECT_EQ(names.size(), resource_kinds);
  for (const std::string_view n : names) EXPECT_EQ(n.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), n.npos) << n;
}

TEST(Resource, TheTwoEndsAreTwoResources) {
  const Resource read_end{pipe, {77, 0}};
  const Resource write_end{pipe, {77, 1}};
  EXPECT_NE(read_end, write_end);
  EXPECT_NE(read_end, (Resource{fifo, {77, 0}}));
  EXPECT_EQ(read_end, (Resource{pipe, {77, 0}}));
}

TEST(Resource, NeighboursSpreadInAHashTable) {
  std::unordered_set<std::size_t> hashes;
  std::vector<std::size_t> buckets(1024, 0);
  for (std::uint64_t inode = 1; inode <= 1024; ++inode) {
    const std::size_t hash = std::hash<Resource>{}({socket, {inode}});
    hashes.insert(hash);
    ++buckets[hash % buckets.size()];
  }
  EXPECT_EQ(hashes.size(), 1024U);
  EXPECT_LE(*std::max_element(buckets.begin(), buckets.end()), 10U);
}

}  // namespace
}  // namespace swapd
