// Who ends the waits of which only the observer of wakes sees the end: for changes of files, on a ring, for a signal or
// a time that a descriptor tells. The real kernel, observer and model.
#include <fcntl.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include <list>

#include "credit_fixture.h"
#include "sys/bpf/io_uring_requests.h"

namespace swapd::observe {
namespace {

using test::Actor;
using test::base_confidence;
using test::Pipe;

// A file whose changes are told.
class Watch {
 public:
  Watch() : changes(::inotify_init1(IN_CLOEXEC)), file(::mkstemp(name_.data())) {
    if (::inotify_add_watch(changes.get(), name_.data(), IN_MODIFY) < 0) std::abort();
  }
  ~Watch() { ::unlink(name_.data()); }
  void change() const { (void)!::write(file.get(), "x", 1); }
  // As the process awaits it.
  [[nodiscard]] Resource awaited_by(const ThreadId& id) const {
    return file_changes_for(id, static_cast<std::uint64_t>(changes.get()));
  }

 private:
  std::array<char, 40> name_{"/tmp/bpf_kinds_XXXXXX"};

 public:
  Fd changes, file;
};

void poll_both(int one, int other, int milliseconds = -1) {
  std::array<pollfd, 2> set{{{one, POLLIN, 0}, {other, POLLIN, 0}}};
  ::poll(set.data(), set.size(), milliseconds);
}

class BpfKinds : public test::Credit {
 protected:
  // Blocked, and known to be.
  void set_off(const Actor& waiter, const ThreadId& id, const Resource& awaited) {
    observer_->watch({id, id.tid}, true);
    waiter.go();
    ASSERT_TRUE(waits_for(id, awaited));
  }
};

TEST_F(BpfKinds, WhoChangesAFileEndsTheWaitForChanges) {
  const Watch watch;
  const Actor waiter([&] {
    std::array<char, 256> event{};
    (void)!::read(watch.changes.get(), event.data(), event.size());
  });
  const Actor writer([&] { watch.change(); });
  const ThreadId w = join(waiter), p = join(writer);
  set_off(waiter, w, watch.awaited_by(w));
  writer.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.by, p);
  EXPECT_EQ(confidences(watch.awaited_by(w)), (std::map<pid_t, int>{{p.tid, base_confidence + 1}}));
}

// An unrelated descriptor: that the thread provides the pipe too does not matter.
TEST_F(BpfKinds, AChangedFileGivesNoneForThePipeBesideIt) {
  const Watch watch;
  const Pipe pipe;
  const Actor waiter([&] { poll_both(pipe.in.get(), watch.changes.get()); });
  const Actor writer([&] { watch.change(); });
  const ThreadId w = join(waiter), p = join(writer);
  know(pipe.writers(), {p});
  set_off(waiter, w, pipe.writers());
  writer.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.by, p);
  EXPECT_EQ(woken_.through, watch.awaited_by(w));
  EXPECT_EQ(confidences(pipe.writers()), (std::map<pid_t, int>{{p.tid, base_confidence}}));
  EXPECT_EQ(confidences(watch.awaited_by(w)), (std::map<pid_t, int>{{p.tid, base_confidence + 1}}));
}

TEST_F(BpfKinds, ThePipeBesideAWatchedFileNamesItsWriter) {
  const Watch watch;
  const Pipe pipe;
  const Actor waiter([&] { poll_both(pipe.in.get(), watch.changes.get()); });
  const Actor writer([&] { pipe.put(); });
  const ThreadId w = join(waiter), p = join(writer);
  set_off(waiter, w, watch.awaited_by(w));
  writer.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.by, p);
  EXPECT_EQ(woken_.through, pipe.writers());
  EXPECT_TRUE(confidences(watch.awaited_by(w)).empty());
}

TEST_F(BpfKinds, ATimersDescriptorGivesNoneThoughTheProviderIsBusy) {
  const Pipe pipe;
  const Fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  const itimerspec soon{.it_interval = {}, .it_value = {0, 300'000'000}};
  const Actor waiter([&] {
    ::timerfd_settime(timer.get(), 0, &soon, nullptr);
    poll_both(pipe.in.get(), timer.get());
  });
  const Actor busy([] {  // the timer interrupts it
    for (;;) asm volatile("");
  });
  cpu_set_t all, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  for (const Actor* actor : {&waiter, &busy}) ASSERT_EQ(::sched_setaffinity(actor->pid(), sizeof one, &one), 0);
  const ThreadId w = join(waiter), p = join(busy);
  know(pipe.writers(), {p});
  set_off(waiter, w, pipe.writers());
  busy.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_TRUE(woken_.unrelated);
  EXPECT_EQ(confidences(pipe.writers()), (std::map<pid_t, int>{{p.tid, base_confidence}}));
}

// Whatever CPU the disk's interrupt strikes, a provider of the pipe that is awaited beside has it.
TEST_F(BpfKinds, ADisksCompletionGivesNoneThoughProvidersAreBusy) {
  std::array<char, 40> name{"/var/tmp/bpf_kinds_XXXXXX"};
  const Fd file(::mkstemp(name.data()));
  ASSERT_TRUE(file);
  constexpr std::size_t block = 1 << 16, blocks = 16;
  const std::vector<char> bytes(block * blocks, 'x');
  ASSERT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ::fsync(file.get());
  const Fd direct(::open(name.data(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  ::unlink(name.data());
  if (!direct) GTEST_SKIP() << "no direct I/O on the file system of /var/tmp";
  const Pipe pipe;
  const Fd done(::eventfd(0, EFD_CLOEXEC));  // counts the reads that are over
  const Actor waiter([&] {
    aio_context_t context = 0;
    ::syscall(SYS_io_setup, 1, &context);
    void* buffer = std::aligned_alloc(4096, block);
    for (std::size_t i = 0; i < 100; ++i) {
      iocb read{};
      read.aio_lio_opcode = IOCB_CMD_PREAD;
      read.aio_fildes = static_cast<std::uint32_t>(direct.get());
      read.aio_buf = reinterpret_cast<std::uintptr_t>(buffer);
      read.aio_nbytes = block;
      read.aio_offset = static_cast<std::int64_t>(i % blocks * block);
      read.aio_flags = IOCB_FLAG_RESFD;
      read.aio_resfd = static_cast<std::uint32_t>(done.get());
      iocb* reads = &read;
      ::syscall(SYS_io_submit, context, 1, &reads);
      poll_both(pipe.in.get(), done.get());
      io_event event{};
      ::syscall(SYS_io_getevents, context, 1, 1, &event, nullptr);
      std::uint64_t count = 0;
      (void)!::read(done.get(), &count, sizeof count);
    }
    pipe.take();
  });
  const ThreadId w = join(waiter);
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  std::list<Actor> busy;
  std::map<pid_t, int> unchanged;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    const Actor& one = busy.emplace_back([] {
      for (;;) asm volatile("");
    });
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    ASSERT_EQ(::sched_setaffinity(one.pid(), sizeof own, &own), 0);
    know(pipe.writers(), {join(one)});
    unchanged[one.pid()] = base_confidence;
    one.go();
  }
  observer_->watch({w, w.tid}, true);
  waiter.go();
  ASSERT_TRUE(until(w, [&] {  // all the reads are over
    const auto view = model_.thread(w);
    return view && view->state == model::RunState::blocked && view->awaited.size() == 1 &&
           view->awaited.front() == pipe.writers();
  }));
  EXPECT_GT(wakes_, 10) << "most of the reads end before they are awaited";
  EXPECT_EQ(confidences(pipe.writers()), unchanged);
}

TEST_F(BpfKinds, ASignalsDescriptorNamesItsSenderAndNotThePipes) {
  const Pipe pipe;
  const Actor waiter([&] {
    sigset_t usr2;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    ::sigprocmask(SIG_BLOCK, &usr2, nullptr);
    const int signals = ::signalfd(-1, &usr2, SFD_CLOEXEC);
    poll_both(pipe.in.get(), signals);
  });
  const Actor sender([pid = waiter.pid()] { ::kill(pid, SIGUSR2); });
  const ThreadId w = join(waiter), s = join(sender);
  const Resource signal = signal_to(w);
  know(pipe.writers(), {s});
  set_off(waiter, w, signal);
  sender.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.through, signal);
  EXPECT_EQ(confidences(signal), (std::map<pid_t, int>{{s.tid, base_confidence + 1}}));
  EXPECT_EQ(confidences(pipe.writers()), (std::map<pid_t, int>{{s.tid, base_confidence}}));
}

TEST_F(BpfKinds, AnEventfdNamesWhoAddsToIt) {
  const Fd events(::eventfd(0, EFD_CLOEXEC));
  const Actor waiter([&] {
    std::uint64_t count = 0;
    (void)!::read(events.get(), &count, sizeof count);
  });
  const Actor writer([&] {
    const std::uint64_t one = 1;
    (void)!::write(events.get(), &one, sizeof one);
  });
  const auto numbers = procfs_.fd_numbers(::getpid(), events.get());
  ASSERT_TRUE(numbers);
  const Resource counter = event_counter(static_cast<std::uint64_t>(numbers->eventfd_id));
  const ThreadId w = join(waiter), p = join(writer);
  set_off(waiter, w, counter);
  writer.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(confidences(counter), (std::map<pid_t, int>{{p.tid, base_confidence + 1}}));
}

// The ring's outstanding request is a read of the pipe; whoever writes there completes it.
TEST_F(BpfKinds, ARingsRequestNamesWhoCompletesIt) {
  const auto rings = sys::RingRequests::open();
  if (!rings.ok()) GTEST_SKIP() << rings.error().text();
  if (const Status any = (*rings)->lists_any_thread(); !any) GTEST_SKIP() << any.error().text();
  const Pipe pipe;
  const Actor waiter([&] {
    io_uring ring{};
    char byte = 0;
    if (::io_uring_queue_init(4, &ring, 0) != 0) return;
    ::io_uring_prep_read(::io_uring_get_sqe(&ring), pipe.in.get(), &byte, 1, 0);
    ::io_uring_submit_and_wait(&ring, 1);
  });
  const Actor writer([&] { pipe.put(); }), other([] {});
  const ThreadId w = join(waiter), p = join(writer), o = join(other);
  know(pipe.writers(), {p, o});
  set_off(waiter, w, pipe.writers());
  writer.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.by, p);
  EXPECT_EQ(confidences(pipe.writers()),
            (std::map<pid_t, int>{{p.tid, base_confidence + 1}, {o.tid, base_confidence}}));
}

}  // namespace
}  // namespace swapd::observe
