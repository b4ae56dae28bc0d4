#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "blocked_program.h"

namespace swapd::observe {
namespace {

struct Case {
  const char* scenario;
  ResourceKind kind;
  Evidence evidence = Evidence::holder;
  bool quick = true;  // the engine alone can tell
  const char* program = "file";
};

class FileWait : public ResolverTest, public testing::WithParamInterface<Case> {};

TEST_P(FileWait, NamesTheProvider) {
  const Case& expected = GetParam();
  const Story story = start(expected.program, expected.scenario);
  if (expected.quick) {
    expect_quick(story);
  } else {
    EXPECT_FALSE(resolver_.quick(story.site).complete);
  }
  expect_provider(story, expected.kind, expected.evidence);
}

std::string name_of(const testing::TestParamInfo<Case>& test) { return test_name(test.param.scenario); }

INSTANTIATE_TEST_SUITE_P(Descriptors, FileWait,
                         testing::Values(Case{"pipe-read", ResourceKind::pipe}, Case{"pipe-write", ResourceKind::pipe},
                                         Case{"pipe-reused", ResourceKind::pipe}, Case{"pipe-dup", ResourceKind::pipe},
                                         Case{"pipe-passed", ResourceKind::pipe}, Case{"fifo", ResourceKind::fifo},
                                         Case{"pty-slave", ResourceKind::pty}, Case{"pty-master", ResourceKind::pty},
                                         Case{"eventfd", ResourceKind::eventfd},
                                         Case{"posix-mq", ResourceKind::posix_mq}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Locks, FileWait,
                         testing::Values(Case{"flock-ex-ex", ResourceKind::flock, Evidence::owner},
                                         Case{"flock-ex-sh", ResourceKind::flock, Evidence::owner},
                                         Case{"flock-sh-ex", ResourceKind::flock, Evidence::owner},
                                         Case{"flock-inherited", ResourceKind::flock, Evidence::owner},
                                         Case{"record", ResourceKind::record_lock, Evidence::owner, false},
                                         Case{"record-read", ResourceKind::record_lock, Evidence::owner, false},
                                         Case{"ofd", ResourceKind::record_lock, Evidence::owner, false},
                                         Case{"ofd-record", ResourceKind::record_lock, Evidence::owner, false}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Sets, FileWait,
                         testing::Values(Case{"poll", ResourceKind::pipe, Evidence::holder, false, "set"},
                                         Case{"ppoll", ResourceKind::pipe, Evidence::holder, false, "set"},
                                         Case{"select", ResourceKind::pipe, Evidence::holder, false, "set"},
                                         Case{"epoll", ResourceKind::pipe, Evidence::holder, false, "set"},
                                         Case{"epoll-pwait2", ResourceKind::pipe, Evidence::holder, false, "set"},
                                         Case{"epoll-nested", ResourceKind::pipe, Evidence::holder, false, "set"},
                                         Case{"epoll-stale", ResourceKind::pipe, Evidence::holder, false, "set"},
                                         Case{"epoll-timer", ResourceKind::pipe, Evidence::holder, false, "set"}),
                         name_of);

using Files = ResolverTest;

TEST_F(Files, ASetIsAllItsMembersOnce) {
  for (const char* scenario : {"poll", "select", "epoll", "epoll-nested", "epoll-stale"}) {
    const Story story = start("set", scenario);
    EXPECT_EQ(resolver_.full(story.site).awaited.size(), 2U) << scenario;
  }
}

TEST_F(Files, ASetWaitedInBeforeIsGuessed) {
  const Story story = start("set", "epoll");
  EXPECT_THAT(resolver_.quick(story.site).awaited, testing::IsEmpty());
  const Wait full = resolver_.full(story.site);
  const Wait guess = resolver_.quick(story.site);
  EXPECT_EQ(guess.awaited, full.awaited);
  resolver_.forget(story.site.tgid);
  EXPECT_THAT(resolver_.quick(story.site).awaited, testing::IsEmpty());
}

// poll() with a timeout goes on as restart_syscall after a stop; its arguments are still in the registers.
TEST_F(Files, AWaitGoesOnAfterAStop) {
  Story story = start("set", "poll-timeout");
  const Wait before = resolver_.full(story.site);
  ASSERT_EQ(before.awaited.size(), 2U);
  ASSERT_EQ(::kill(story.waiter, SIGSTOP), 0);
  ASSERT_TRUE(eventually([&] { return procfs_.stat(story.waiter)->state == 'T'; }));
  ASSERT_EQ(::kill(story.waiter, SIGCONT), 0);
  story.site = blocked(story.waiter, {SYS_restart_syscall});
  EXPECT_EQ(resolver_.full(story.site).awaited, before.awaited);
  EXPECT_EQ(resolver_.quick(story.site).awaited, before.awaited);
}

TEST_F(Files, ASignalfdAwaitsSignals) {
  const Story story = start("set", "poll-signalfd");
  const Wait wait = resolver_.full(story.site);
  ASSERT_EQ(wait.awaited.size(), 1U);
  EXPECT_EQ(wait.awaited[0].kind, ResourceKind::signal);
}

TEST_F(Files, SpliceAwaitsBothEnds) {
  const Story story = start("file", "pipe-splice");
  const Wait wait = resolver_.quick(story.site);
  EXPECT_TRUE(wait.complete);
  EXPECT_EQ(wait.awaited.size(), 2U);
  EXPECT_THAT(providers(story, {wait.awaited[0]}), testing::ElementsAre(story.provider));
}

TEST_F(Files, AnExclusiveRequestAwaitsSharersToo) {
  const Story wants_all = start("file", "flock-sh-ex");
  EXPECT_EQ(resolver_.quick(wants_all.site).awaited.size(), 2U);
  const Story shares = start("file", "flock-ex-sh");
  const Wait wait = resolver_.quick(shares.site);
  ASSERT_EQ(wait.awaited.size(), 1U);
  EXPECT_EQ(wait.awaited[0].ids[2], 1U);
  EXPECT_EQ(resolver_.access(shares.site).accessed.at(0).ids[2], 0U);
}

TEST_F(Files, ARecordLockIsItsRange) {
  const Story story = start("file", "record");
  const Wait wait = resolver_.full(story.site);
  ASSERT_EQ(wait.awaited.size(), 1U);
  EXPECT_EQ(wait.awaited[0].ids[2], 15U);
  EXPECT_EQ(wait.awaited[0].ids[3], 24U);
}

TEST_F(Files, AnEndOfAPipeIsProvidedByWhoUsesIt) {
  const Story reader = start("file", "pipe-read");
  const Wait wait = resolver_.quick(reader.site);
  const Access access = resolver_.access(reader.site);
  ASSERT_EQ(wait.awaited.size(), 1U);
  ASSERT_EQ(access.accessed.size(), 1U);
  EXPECT_EQ(wait.awaited[0].ids[1], 1U);
  EXPECT_EQ(access.accessed[0].ids[1], 0U);
  EXPECT_EQ(wait.awaited[0].ids[0], access.accessed[0].ids[0]);
}

}  // namespace
}  // namespace swapd::observe
