// The process connector against the real kernel.
#include "sys/netlink/proc_events.h"

#include <gtest/gtest.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "supervised.h"

namespace swapd::sys {
namespace {

using test::eventually;
using What = ProcEvent::What;

class ProcEventsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = ProcEvents::open();
    if (!opened && (opened.error().code() == EPERM || opened.error().code() == EOPNOTSUPP))
      GTEST_SKIP() << opened.error().text();
    ASSERT_TRUE(opened) << opened.error().text();
    events_ = std::move(opened).value();
  }

  // Reads until such an event has come.
  bool find(What what, pid_t tid) {
    return eventually([&] {
      std::array<ProcEvent, 64> batch;
      const auto n = events_->read(batch.data(), batch.size());
      if (n) seen_.insert(seen_.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(*n));
      found_ = std::ranges::find_if(seen_, [&](const ProcEvent& e) { return e.what == what && e.tid == tid; });
      return found_ != seen_.end();
    });
  }

  std::unique_ptr<ProcEvents> events_;
  std::vector<ProcEvent> seen_;
  std::vector<ProcEvent>::iterator found_;
};

TEST_F(ProcEventsTest, ForkExecAndExitOfAProcess) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execl("/bin/true", "true", nullptr);
    ::_exit(127);
  }
  ::waitpid(pid, nullptr, 0);
  ASSERT_TRUE(find(What::fork, pid));
  EXPECT_EQ(found_->tgid, pid);
  EXPECT_EQ(found_->parent_tid, ::gettid());
  EXPECT_EQ(found_->parent_tgid, ::getpid());
  const auto forked = found_ - seen_.begin();
  ASSERT_TRUE(find(What::exec, pid));
  const auto execed = found_ - seen_.begin();
  EXPECT_LT(forked, execed);
  ASSERT_TRUE(find(What::exit, pid));
  EXPECT_EQ(found_->tgid, pid);
  EXPECT_LT(execed, found_ - seen_.begin());
}

TEST_F(ProcEventsTest, StartAndEndOfAThread) {
  pid_t tid = 0;
  std::thread([&] { tid = ::gettid(); }).join();
  ASSERT_TRUE(find(What::fork, tid));
  EXPECT_EQ(found_->tgid, ::getpid());
  EXPECT_EQ(found_->parent_tgid, ::getpid());
  ASSERT_TRUE(find(What::exit, tid));
  EXPECT_EQ(found_->tgid, ::getpid());
}

TEST_F(ProcEventsTest, AnExecByAnotherThanTheMainThread) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::thread([] { ::execl("/bin/true", "true", nullptr); }).join();
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_TRUE(find(What::exec, pid));  // it has become the main thread
}

TEST_F(ProcEventsTest, NothingElseComes) {
  pollfd entry{events_->fd(), POLLIN, 0};
  (void)::poll(&entry, 1, 0);
  std::array<ProcEvent, 64> batch;
  while (events_->read(batch.data(), batch.size()).value_or(0) > 0) {
  }
  ::prctl(PR_SET_NAME, "renamed");  // the kernel has an event for this, too
  std::size_t ours = 0;
  const auto n = events_->read(batch.data(), batch.size());
  ASSERT_TRUE(n);
  for (std::size_t i = 0; i < *n; ++i) ours += batch.at(i).tid == ::gettid() ? 1 : 0;
  EXPECT_EQ(ours, 0U);
}

// Whoever may send to the socket at all could have a stranger's pid taken for a child of a managed process.
TEST_F(ProcEventsTest, WhatTheKernelHasNotSentIsNone) {
  sockaddr_nl to{};
  socklen_t size = sizeof to;
  ASSERT_EQ(::getsockname(events_->fd(), reinterpret_cast<sockaddr*>(&to), &size), 0);
  struct {
    nlmsghdr header;
    std::array<std::byte, sizeof(cn_msg) + sizeof(proc_event)> rest;
  } message{};
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = NLMSG_DONE;
  cn_msg connector{};
  connector.id.idx = CN_IDX_PROC;
  connector.id.val = CN_VAL_PROC;
  connector.len = sizeof(proc_event);
  proc_event forged{};
  forged.what = decltype(forged.what)(1);  // a fork
  forged.event_data.fork = {
      .parent_pid = ::getpid(), .parent_tgid = ::getpid(), .child_pid = 4'000'001, .child_tgid = 4'000'001};
  std::memcpy(message.rest.data(), &connector, sizeof connector);
  std::memcpy(message.rest.data() + sizeof connector, &forged, sizeof forged);
  const Fd forger(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR));
  ASSERT_EQ(::sendto(forger.get(), &message, sizeof message, 0, reinterpret_cast<const sockaddr*>(&to), size),
            static_cast<ssize_t>(sizeof message));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(find(What::exit, child)) << "and all that came before it has been read";
  EXPECT_TRUE(std::ranges::none_of(seen_, [](const ProcEvent& e) { return e.tid == 4'000'001; }));
}

TEST_F(ProcEventsTest, OverflowIsReportedAndPasses) {
  // A socket with a small buffer of its own would not be ours; so as many events as the buffer cannot hold.
  constexpr int most = 60'000;
  bool overflowed = false;
  for (int i = 0; i < most && !overflowed; i += 100) {
    for (int k = 0; k < 100; ++k) std::thread([] {}).join();
    pollfd entry{events_->fd(), POLLIN, 0};
    overflowed = ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLERR) != 0;
  }
  ASSERT_TRUE(overflowed);
  std::array<ProcEvent, 64> batch;
  bool reported = false;
  EXPECT_TRUE(eventually([&] {
    const auto n = events_->read(batch.data(), batch.size());
    if (!n) reported |= n.error().code() == ENOBUFS;
    return n && *n == 0;
  }));
  EXPECT_TRUE(reported);
}

}  // namespace
}  // namespace swapd::sys
