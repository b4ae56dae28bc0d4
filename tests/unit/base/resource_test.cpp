// The text forms are a contract: other tools read them. So are the ids: recordings and the saved confidences hold them.
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

TEST(Resource, EachIdentityHasTheIdsThatItsKindSays) {
  const ThreadId process{42, 1000};
  const FileId file{7, 123};
  EXPECT_EQ(socket_endpoint(12345), (Resource{socket, {12345}}));
  EXPECT_EQ(pipe_end(77, PipeEnd::read), (Resource{pipe, {77, 0}}));
  EXPECT_EQ(pipe_end(77, PipeEnd::write), (Resource{pipe, {77, 1}}));
  EXPECT_EQ(fifo_end(file, PipeEnd::write), (Resource{fifo, {123, 1, 7}}));
  EXPECT_EQ(sysv_queue(4026531839, 3), (Resource{sysv_msg, {4026531839, 3}}));
  EXPECT_EQ(sysv_semaphores(4026531839, 0), (Resource{sysv_sem, {4026531839, 0}}));
  EXPECT_EQ(message_queue(file), (Resource{posix_mq, {7, 123}}));
  EXPECT_EQ(file_lock(file, LockMode::shared), (Resource{ResourceKind::flock, {7, 123, 0}}));
  EXPECT_EQ(file_lock(file, LockMode::exclusive), (Resource{ResourceKind::flock, {7, 123, 1}}));
  EXPECT_EQ(byte_range_lock(file, 5, UINT64_MAX), (Resource{record_lock, {7, 123, 5, UINT64_MAX}}));
  EXPECT_EQ(signal_to(process), (Resource{ResourceKind::signal, {42, 1000}}));
  EXPECT_EQ(futex_of(process, 4096), (Resource{futex, {42, 4096, 1000, 0}}));
  EXPECT_EQ(futex_in(file, 64), (Resource{futex, {7, 123, 64, 1}}));
  EXPECT_EQ(event_counter(6), (Resource{ResourceKind::eventfd, {6}}));
  EXPECT_EQ(pty_side(3, PtySide::slave, 24), (Resource{pty, {3, 0, 24}}));
  EXPECT_EQ(pty_side(3, PtySide::master, 24), (Resource{pty, {3, 1, 24}}));
  EXPECT_EQ(child_exit_of(process), (Resource{child_exit, {42, 1000}}));
  EXPECT_EQ(any_child_of(process), (Resource{child_exit, {0, 0, 42, 1000}}));
  EXPECT_EQ(file_changes_for(process, 5), (Resource{inotify, {42, 1000, 5}}));
  EXPECT_EQ(kernel_work_of(process), (Resource{kernel_work, {42, 1000}}));
  EXPECT_EQ(kernel_lock_of(file), (Resource{ResourceKind::kernel, {7, 123}}));
  EXPECT_EQ(fuse_files_of(7), (Resource{ResourceKind::kernel, {7}}));
  EXPECT_EQ(memory_of(process), (Resource{ResourceKind::kernel, {0, 0, 42, 1000}}));
}

TEST(Resource, ANegativeSysvIdIsOneOf32Bits) { EXPECT_EQ(sysv_queue(1, -1).ids[1], 0xFFFFFFFF); }

TEST(Resource, ThoseOfAThreadGiveItBack) {
  const ThreadId thread{42, 1000};
  for (const Resource& resource :
       {signal_to(thread), child_exit_of(thread), any_child_of(thread), file_changes_for(thread, 5),
        kernel_work_of(thread), memory_of(thread), futex_of(thread, 4096)}) {
    EXPECT_EQ(thread_of(resource), thread) << text(resource);
    EXPECT_EQ(file_of(resource), FileId{}) << text(resource);
  }
}

TEST(Resource, ThoseOfAFileGiveItBack) {
  const FileId file{7, 123};
  for (const Resource& resource :
       {fifo_end(file, PipeEnd::read), message_queue(file), kernel_lock_of(file), file_lock(file, LockMode::shared),
        byte_range_lock(file, 0, 9), futex_in(file, 64)}) {
    EXPECT_EQ(file_of(resource), file) << text(resource);
    EXPECT_FALSE(thread_of(resource).valid()) << text(resource);
  }
  EXPECT_EQ(file_of(fuse_files_of(7)), (FileId{7, 0}));
  EXPECT_FALSE(thread_of(socket_endpoint(42)).valid());
  EXPECT_FALSE(thread_of(Resource{}).valid());
}

TEST(Resource, FormsOfOneKindAreToldApart) {
  const ThreadId process{42, 1000};
  const FileId file{7, 123};
  EXPECT_TRUE(is_any_child(any_child_of(process)));
  EXPECT_FALSE(is_any_child(child_exit_of(process)));
  EXPECT_FALSE(is_any_child(memory_of(process)));
  EXPECT_TRUE(is_memory(memory_of(process)));
  EXPECT_FALSE(is_memory(fuse_files_of(7)));
  EXPECT_FALSE(is_memory(any_child_of(process)));
  EXPECT_TRUE(is_fuse_files(fuse_files_of(7)));
  EXPECT_FALSE(is_fuse_files(kernel_lock_of(file)));
  EXPECT_FALSE(is_fuse_files(memory_of(process)));
  EXPECT_TRUE(is_shared_futex(futex_in(file, 64)));
  EXPECT_FALSE(is_shared_futex(futex_of(process, 4096)));
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
