#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <future>
#include <random>
#include <thread>

#include "blocked_program.h"
#include "observe/io/io_calls.h"

namespace swapd::observe {
namespace {

using Processes = ResolverTest;

TEST_F(Processes, AParentWaitsForItsChild) {
  for (const char* scenario : {"wait4", "waitid", "waitid-pidfd", "wait-any"}) {
    SCOPED_TRACE(scenario);
    const Story story = start("process", scenario);
    expect_quick(story);
    expect_provider(story, ResourceKind::child_exit, Evidence::child);
    const Resource awaited = resolver_.quick(story.site).awaited.at(0);
    const bool any = std::string(scenario) == "wait-any";
    EXPECT_EQ(awaited.ids[any ? 2 : 0], static_cast<std::uint64_t>(any ? story.waiter : story.provider));
    EXPECT_EQ(awaited.ids[any ? 3 : 1], procfs_.thread_id(any ? story.waiter : story.provider).value_or({}).start_time);
  }
}

// The child is called 2 by its parent; its id here is another.
TEST_F(Processes, AChildInAPidNamespaceOfItsOwn) {
  Story story = start("process", "wait4-namespace");
  story.site = blocked(story.waiter, {SYS_wait4});
  EXPECT_EQ(story.site.args[0], 2U);
  EXPECT_FALSE(resolver_.quick(story.site).complete);
  expect_provider(story, ResourceKind::child_exit, Evidence::child);
}

TEST_F(Processes, AWaitForASignalIsForTheProcess) {
  for (const char* scenario : {"sigsuspend", "sigwaitinfo", "pause"}) {
    SCOPED_TRACE(scenario);
    const Story story = start("process", scenario);
    expect_quick(story);
    const Wait wait = resolver_.quick(story.site);
    const auto id = procfs_.thread_id(story.waiter);
    ASSERT_TRUE(id.ok());
    const Resource expected = signal_to(*id);
    EXPECT_THAT(wait.awaited, testing::ElementsAre(expected));
    // Nothing tells who will send it: a sibling is a guess. Who did is learnt from its call.
    for (const Found& found : resolver_.scan(story.waiter, wait.awaited, story.members))
      EXPECT_EQ(found.evidence, Evidence::guess);
    const CallSite kill{.tid = story.provider,
                        .tgid = story.provider,
                        .nr = SYS_kill,
                        .args = {static_cast<std::uint64_t>(story.waiter), SIGUSR1}};
    EXPECT_THAT(resolver_.access(kill).accessed, testing::ElementsAre(expected));
  }
}

TEST_F(Processes, TimeIsProvidedByNobody) {
  const Story story = start("process", "sleep");
  const Wait wait = resolver_.quick(story.site);
  EXPECT_TRUE(wait.complete);
  EXPECT_TRUE(wait.awaited.empty());
}

TEST_F(Processes, SystemVObjectsAreNamedByTheirLastUsers) {
  for (const auto& [scenario, kind] :
       {std::pair{"sysv-sem", ResourceKind::sysv_sem}, std::pair{"sysv-msg", ResourceKind::sysv_msg}}) {
    SCOPED_TRACE(scenario);
    Story story = start("process", scenario);
    story.site = blocked(story.waiter, {SYS_semop, SYS_semtimedop, SYS_msgrcv});
    expect_quick(story);
    expect_provider(story, kind);
    EXPECT_EQ(resolver_.access(story.site).accessed, resolver_.quick(story.site).awaited);
  }
}

TEST_F(Processes, AnIpcNamespaceIsPartOfTheName) {
  Story story = start("process", "sysv-sem-namespace");
  story.site = blocked(story.waiter, {SYS_semop, SYS_semtimedop});
  const Wait wait = resolver_.quick(story.site);
  ASSERT_EQ(wait.awaited.size(), 1U);
  EXPECT_EQ(wait.awaited[0].ids[0], procfs_.namespace_inode(story.waiter, "ipc").value_or(0));
  EXPECT_NE(wait.awaited[0].ids[0], procfs_.namespace_inode(::getpid(), "ipc").value_or(0));
  EXPECT_TRUE(resolver_.scan(story.waiter, wait.awaited, story.members).empty());
}

TEST_F(Processes, AMutexNamesItsOwner) {
  for (const char* scenario : {"mutex", "mutex-pi", "mutex-robust", "mutex-shared", "join"}) {
    SCOPED_TRACE(scenario);
    Story story = start("process", scenario);
    story.site = blocked(story.waiter, {SYS_futex});
    const Wait wait = resolver_.full(story.site);
    ASSERT_EQ(wait.awaited.size(), 1U);
    EXPECT_EQ(wait.awaited[0].kind, ResourceKind::futex);
    EXPECT_EQ(wait.awaited[0].ids[3], std::string(scenario) == "mutex-shared" ? 1U : 0U);
    EXPECT_THAT(wait.owners, testing::ElementsAre(story.provider));
    expect_provider(story, ResourceKind::futex, Evidence::owner);
  }
}

TEST_F(Processes, OfAnEndlessSetSoManyAreAwaited) {
  const pid_t waiter = ::fork();
  if (waiter == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<pollfd> all;
    for (int i = 0; i < 600; ++i) all.push_back({.fd = ::eventfd(0, EFD_CLOEXEC), .events = POLLIN, .revents = 0});
    ::poll(all.data(), all.size(), -1);
    ::_exit(0);
  }
  const Wait wait = resolver_.full(blocked(waiter, {SYS_poll}));
  EXPECT_EQ(wait.awaited.size(), 256U);
  ::kill(waiter, SIGKILL);
  ::waitpid(waiter, nullptr, 0);
}

// What a program says of its own memory is not believed.
TEST_F(Processes, AddressesThatAreNoneDoNoHarm) {
  const Story story = start("process", "sleep");
  const auto full = [&](int call, std::array<std::uint64_t, 6> args) {
    return resolver_.full({.tid = story.waiter, .tgid = story.waiter, .nr = call, .args = args}).awaited;
  };
  for (const std::uint64_t address : {0x8UL, 0x7fffffff0000UL, 0xffff888000000000UL, ~0UL})
    for (const std::uint64_t count : {0UL, 1UL, 0x7fffffffUL, ~0UL}) {
      for (const int call : {SYS_poll, SYS_ppoll})
        EXPECT_TRUE(full(call, {address, count, address, address, 8, 0}).empty()) << call << ' ' << address;
      for (const int call : {SYS_select, SYS_pselect6})
        EXPECT_TRUE(full(call, {count, address, address, address, address, address}).empty()) << call << ' ' << address;
      for (const int call : {SYS_semop, SYS_futex, SYS_rt_sigtimedwait, SYS_mq_timedreceive, SYS_recvmsg, SYS_sendmsg,
                             SYS_connect, SYS_fcntl, SYS_waitid, SYS_io_uring_enter})
        for (const std::uint64_t first : {address, count})
          EXPECT_LE(full(call, {first, address, count, address, address, address}).size(), 256U) << call;
    }
  EXPECT_EQ(::kill(story.waiter, 0), 0);
}

// What another thread writes meanwhile is read once: an answer never is of two states of the memory.
TEST_F(Processes, MemoryThatChangesWhileItIsReadDoesNoHarm) {
  struct Page {
    msghdr header;
    std::array<iovec, 8> parts;
    std::array<pollfd, 16> polls;
  };
  void* shared = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* page = static_cast<Page*>(shared);
  const pid_t writer = ::fork();  // it has the page where we have it
  if (writer == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::minstd_rand random(1);
    volatile auto* bytes = reinterpret_cast<volatile std::uint32_t*>(page);
    for (;;) {
      for (std::size_t i = 0; i < sizeof(Page) / sizeof *bytes; ++i)
        bytes[i] = random() % 4 == 0 ? static_cast<std::uint32_t>(random()) : 0;
      page->header.msg_iov = random() % 2 == 0 ? page->parts.data() : nullptr;
      page->header.msg_iovlen = random() % 2 == 0 ? 8 : ~std::size_t{0};
    }
  }
  const auto address = [](const void* data) { return reinterpret_cast<std::uint64_t>(data); };
  const ReadTarget target = [&](std::uint64_t from, void* out, std::size_t size) {
    return sys::Procfs::read_memory(writer, from, out, size);
  };
  constexpr std::int64_t most = 0x7ffff000;  // that one call moves (read(2), NOTES)
  for (int i = 0; i < 20'000; ++i) {
    const auto message = asked(*io_call(SYS_sendmsg), {3, address(&page->header)}, target);
    EXPECT_TRUE(!message.ok() || (*message >= 1 && *message <= most)) << *message;
    const auto vector = asked(*io_call(SYS_writev), {3, address(page->parts.data()), 8}, target);
    EXPECT_TRUE(!vector.ok() || (*vector >= 1 && *vector <= most)) << *vector;
    if (i % 10 != 0) continue;
    const CallSite poll{.tid = writer, .tgid = writer, .nr = SYS_poll, .args = {address(page->polls.data()), 16}};
    EXPECT_LE(resolver_.full(poll).awaited.size(), 32U);
    const CallSite select{.tid = writer,
                          .tgid = writer,
                          .nr = SYS_select,
                          .args = {1024, address(page), address(page->parts.data()), 0, 0}};
    EXPECT_LE(resolver_.full(select).awaited.size(), 256U);
  }
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  ::munmap(shared, sizeof(Page));
}

// Whoever has very many threads is looked at for three.
TEST_F(Processes, OfManyThreadsThreeAreNamed) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd reading(ends[0]), writing(ends[1]);
  const pid_t waiter = ::fork();
  if (waiter == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(writing.get());
    char byte = 0;
    (void)!::read(reading.get(), &byte, 1);
    ::_exit(0);
  }
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 600; ++i) threads.emplace_back([ended] { ended.wait(); });
  const Wait wait = resolver_.full(blocked(waiter, {SYS_read}));
  const std::array<pid_t, 1> members{::getpid()};
  const std::vector<Found> found = resolver_.scan(waiter, wait.awaited, members);
  end.set_value();  // before anything returns: the threads are joined
  ::kill(waiter, SIGKILL);
  ::waitpid(waiter, nullptr, 0);
  EXPECT_EQ(wait.awaited.size(), 1U);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].threads.size(), 3U);
  EXPECT_TRUE(found[0].unenrolled.empty());
}

TEST_F(Processes, AThreadThatIsGoneIsNoError) {
  pid_t gone = -1;
  {
    const Story story = start("process", "sleep");
    gone = story.waiter;
  }
  EXPECT_TRUE(procfs_.stat(gone).error().gone());
  EXPECT_TRUE(procfs_.syscall(gone).error().gone());
  for (const int call : {SYS_read, SYS_wait4, SYS_semop, SYS_poll, SYS_futex, SYS_flock, SYS_epoll_wait}) {
    const CallSite site{.tid = gone, .tgid = gone, .nr = call, .args = {0, 1, 0, 0, 0, 0}};
    EXPECT_TRUE(resolver_.full(site).awaited.empty()) << call;
  }
  const Resource resource{ResourceKind::pipe, {1, 1}};
  EXPECT_TRUE(resolver_.scan(gone, std::span(&resource, 1), {}).empty());
}

}  // namespace
}  // namespace swapd::observe
