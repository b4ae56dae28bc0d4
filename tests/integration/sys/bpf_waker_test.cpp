// Who ends a wait: the right thread with its call, or nobody. Each with the real kernel.
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "bpf_fixture.h"

namespace swapd::sys {
namespace {

using test::Pipe;
using test::read_byte;
using test::Role;
using test::write_byte;

class BpfWaker : public test::BpfTest {};

TEST_F(BpfWaker, OfAPipe) {
  const Pipe pipe;
  Role waiter([&](Role&) { read_byte(pipe.in.get()); });
  Role provider([&](Role&) { write_byte(pipe.out.get()); });
  expect_waker(waiter, SYS_read, provider, SYS_write);
  EXPECT_EQ(blocked_.args[0], static_cast<std::uint64_t>(pipe.in.get()));
  EXPECT_EQ(blocked_.args[2], 1U);
  EXPECT_EQ(blocked_.sleep, 1);
  EXPECT_EQ(record_.waker.args[0], static_cast<std::uint64_t>(pipe.out.get()));
  EXPECT_FALSE(record_.waker.own_softirq);
}

TEST_F(BpfWaker, OfAPipeWithoutTheHelpersOfNewKernels) {
  open({.old_helpers = true});
  ASSERT_TRUE(tracer_);
  const Pipe pipe;
  Role waiter([&](Role&) { read_byte(pipe.in.get()); });
  Role provider([&](Role&) { write_byte(pipe.out.get()); });
  expect_waker(waiter, SYS_read, provider, SYS_write);
  EXPECT_EQ(record_.waker.args[0], static_cast<std::uint64_t>(pipe.out.get()));
}

// The map of what each CPU runs, of the tracer that was opened last.
Fd running_map() {
  Fd newest;
  for (std::uint32_t id = 0; ::bpf_map_get_next_id(id, &id) == 0;) {
    Fd map(::bpf_map_get_fd_by_id(id));
    bpf_map_info info{};
    std::uint32_t size = sizeof info;
    if (map && ::bpf_obj_get_info_by_fd(map.get(), &info, &size) == 0 && std::string_view(info.name) == "cpus")
      newest = std::move(map);
  }
  return newest;
}

// What was noted at its switch is not believed of who runs elsewhere: as if this CPU's switch had not been seen.
TEST_F(BpfWaker, IsWhoRunsThoughAnotherWasNoted) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2 || !CPU_ISSET(0, &all) || !CPU_ISSET(1, &all)) GTEST_SKIP() << "needs CPUs 0 and 1";
  const Fd map = running_map();
  ASSERT_TRUE(map);
  const auto on_cpu_1 = [] {
    cpu_set_t second;
    CPU_ZERO(&second);
    CPU_SET(1, &second);
    ::sched_setaffinity(0, sizeof second, &second);
  };
  auto* mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto& now = *new (mapped) std::atomic<bool>(false);
  const Pipe pipe, starts;
  Role waiter([&](Role&) { read_byte(pipe.in.get()); });
  Role provider([&](Role&) {
    test::pin_to_first_cpu();
    write_byte(starts.out.get());
    while (!now) {
    }
    write_byte(pipe.out.get());
  });
  watch(waiter);
  waiter.go();
  ASSERT_TRUE(find_block(waiter.pid(), SYS_read));
  provider.go();
  read_byte(starts.in.get());
  on_cpu_1();
  constexpr std::size_t words = 5;  // of each CPU's value; the first is the one that runs
  const auto cpus = static_cast<std::size_t>(::libbpf_num_possible_cpus());
  std::vector<std::uint64_t> noted(cpus * words);
  const std::uint32_t key = 0;
  ASSERT_EQ(::bpf_map_lookup_elem(map.get(), &key, noted.data()), 0);
  noted[0] = noted[words];  // this very thread
  ASSERT_EQ(::bpf_map_update_elem(map.get(), &key, noted.data(), BPF_ANY), 0);
  now = true;
  ASSERT_TRUE(find(What::woken, waiter.pid()));
  ASSERT_EQ(::sched_setaffinity(0, sizeof all, &all), 0);
  ::munmap(mapped, 4096);
  EXPECT_EQ(record_.waker.tid, provider.pid());
  EXPECT_EQ(record_.waker.args[0], static_cast<std::uint64_t>(pipe.out.get()));
}

TEST_F(BpfWaker, WithoutAddressesOfTheKernelNobodyIsNamedForASoftInterrupt) {
  open({.kallsyms = "/dev/null"});
  ASSERT_TRUE(tracer_);
  EXPECT_FALSE(tracer_->names_softirq_senders());
}

TEST_F(BpfWaker, OfAFlock) {
  std::array<char, 32> name{"/tmp/bpf_waker_XXXXXX"};
  const Fd file(::mkstemp(name.data()));
  ASSERT_TRUE(file);
  const auto lock = [&](Role& role) {
    const Fd own(::open(name.data(), O_RDWR | O_CLOEXEC));
    ::flock(own.get(), LOCK_EX);
    role.answer();
    role.word();
    ::flock(own.get(), LOCK_UN);
    role.word();
  };
  Role holder(lock);
  holder.go();
  holder.heard();
  Role waiter(lock);
  expect_waker(waiter, SYS_flock, holder, SYS_flock);
  EXPECT_EQ(record_.waker.args[1], static_cast<std::uint64_t>(LOCK_UN));
  ::unlink(name.data());
}

TEST_F(BpfWaker, OfAFutex) {
  void* shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Role waiter([&](Role&) { ::syscall(SYS_futex, shared, FUTEX_WAIT, 0, nullptr, nullptr, 0); });
  Role provider([&](Role&) { ::syscall(SYS_futex, shared, FUTEX_WAKE, 1, nullptr, nullptr, 0); });
  expect_waker(waiter, SYS_futex, provider, SYS_futex);
  EXPECT_EQ(blocked_.args[0], reinterpret_cast<std::uintptr_t>(shared));
  EXPECT_EQ(record_.waker.args[0], reinterpret_cast<std::uintptr_t>(shared));
  ::munmap(shared, 4096);
}

TEST_F(BpfWaker, OfASystemVSemaphore) {
  const int id = ::semget(IPC_PRIVATE, 1, 0600);
  ASSERT_GE(id, 0);
  const auto change = [&](short by) {
    sembuf operation{0, by, 0};
    ::syscall(SYS_semop, id, &operation, 1);
  };
  Role waiter([&](Role&) { change(-1); });
  Role provider([&](Role&) { change(1); });
  expect_waker(waiter, SYS_semop, provider, SYS_semop);
  EXPECT_EQ(blocked_.args[0], static_cast<std::uint64_t>(id));
  ::semctl(id, 0, IPC_RMID);
}

TEST_F(BpfWaker, OfAUnixSocket) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Fd a(ends[0]), b(ends[1]);
  char byte = 0;
  Role waiter([&](Role&) { ::recv(a.get(), &byte, 1, 0); });
  Role provider([&](Role&) { ::send(b.get(), "x", 1, 0); });
  expect_waker(waiter, SYS_recvfrom, provider, SYS_sendto);
}

// Delivery is in a soft interrupt that the sender's own call runs: the kernel tells of it, or an older one is watched.
class BpfLoopback : public BpfWaker {
 protected:
  void expect_sender() {
    if (!tracer_->names_softirq_senders()) GTEST_SKIP() << "the kernel hides its addresses (kernel.kptr_restrict)";
    const Fd listener(::socket(AF_INET, SOCK_STREAM, 0)), client(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    const Fd server(::accept(listener.get(), nullptr, nullptr));
    ASSERT_TRUE(server);
    for (int i = 0; i < 20; ++i) {
      char byte = 0;
      Role waiter([&](Role&) { ::recv(client.get(), &byte, 1, 0); });
      Role provider([&](Role&) { ::send(server.get(), "x", 1, 0); });
      expect_waker(waiter, SYS_recvfrom, provider, SYS_sendto);
      EXPECT_TRUE(record_.waker.own_softirq);
      EXPECT_EQ(record_.waker.args[0], static_cast<std::uint64_t>(server.get()));
    }
  }
};

TEST_F(BpfLoopback, NamesTheSender) { expect_sender(); }

TEST_F(BpfLoopback, NamesTheSenderWithoutTheHelpersOfNewKernels) {
  open({.old_helpers = true});
  ASSERT_TRUE(tracer_);
  expect_sender();
}

TEST_F(BpfWaker, OfAParentIsItsChild) {
  Role parent(test::await_child);
  watch(parent);
  parent.go();
  ASSERT_TRUE(find([&](const BpfRecord& r) { return r.what == What::fork && r.parent == parent.pid(); }));
  const pid_t child = record_.tid;
  // In silence as long as the child has a CPU.
  ASSERT_TRUE(find([&](const BpfRecord& r) {
    return (r.what == What::blocked && r.tid == parent.pid() && r.call == SYS_wait4) ||
           (r.what == What::left && r.waiter == parent.pid());
  }));
  tracer_->report_wake(parent.pid());
  parent.go();
  ASSERT_TRUE(find(What::woken, parent.pid()));
  EXPECT_EQ(record_.waker.tid, child);
  EXPECT_EQ(record_.waker.call, SYS_exit_group);
}

// The loop runs on the CPU on which the timer strikes, in user space, in calls, or in calls that run soft interrupts.
enum class Loop { computes, calls, sends };

class BpfBystander : public test::BpfTest, public testing::WithParamInterface<Loop> {
 protected:
  static void spin(Loop loop) {
    test::pin_to_first_cpu();
    const Fd socket(::socket(AF_INET, SOCK_DGRAM, 0));
    sockaddr_in self{};
    self.sin_family = AF_INET;
    self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof self;
    (void)::bind(socket.get(), reinterpret_cast<sockaddr*>(&self), size);
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&self), &size);
    char byte = 0;
    while (loop == Loop::calls) ::syscall(SYS_getppid);
    while (loop == Loop::sends) {
      ::sendto(socket.get(), &byte, 1, 0, reinterpret_cast<sockaddr*>(&self), size);
      ::recv(socket.get(), &byte, 1, MSG_DONTWAIT);
    }
    for (;;) asm volatile("");
  }

  // The waits of the waiter in this call are over and nobody is named. (One that is preempted on its way into a wait
  // may be woken before it sleeps, and then has not waited.) from_network: where the loop sends, too, a packet may come
  // while it has soft interrupts disabled: such a wake says that it may have been the loop's own (docs/bpf.md).
  void expect_nobody(Role& waiter, int call, int times, bool from_network = false) {
    Role loop([kind = GetParam()](Role&) { spin(kind); });
    watch(loop);
    watch(waiter);
    const pid_t pid = waiter.pid();
    loop.go();
    waiter.go();
    waiter.end();
    int waits = 0, last_call = -1;
    for (const BpfRecord& r : all()) {
      if (r.tid == pid && r.what == What::blocked) last_call = r.call;
      if (r.tid != pid || r.what != What::woken || last_call != call) continue;
      ++waits;
      if (from_network && GetParam() == Loop::sends && r.waker.own_softirq) continue;
      EXPECT_EQ(r.waker.tid, 0) << "call " << r.waker.call << ", loop " << loop.pid();
      EXPECT_TRUE(r.waker.interrupt);
    }
    EXPECT_GE(waits, times / 2);
  }
};
std::string name_of(const testing::TestParamInfo<Loop>& info) {
  constexpr const char* names[] = {"Computes", "Calls", "Sends"};
  return names[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Beside, BpfBystander, testing::Values(Loop::computes, Loop::calls, Loop::sends), name_of);

// High-resolution timers strike in a hard interrupt.
TEST_P(BpfBystander, HasNoPartInANap) {
  Role waiter([](Role&) {
    test::pin_to_first_cpu();
    const timespec nap{0, 2'000'000};
    for (int i = 0; i < 30; ++i) ::clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
  });
  expect_nobody(waiter, SYS_clock_nanosleep, 30);
}

// The timers of timeouts on sockets strike in a soft interrupt that a hard one runs at its end.
TEST_P(BpfBystander, HasNoPartInATimeout) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends.data()), 0);
  const Fd a(ends[0]), b(ends[1]);
  const timeval timeout{0, 4000};
  ASSERT_EQ(::setsockopt(a.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout), 0);
  Role waiter([&](Role&) {
    test::pin_to_first_cpu();
    char byte = 0;
    for (int i = 0; i < 20; ++i) ::recv(a.get(), &byte, 1, 0);
  });
  expect_nobody(waiter, SYS_recvfrom, 20);
}

// A link on which each packet takes two milliseconds: a timer delivers it, as the interrupt of a network card does what
// comes from outside, and not its sender, who has long gone on.
struct SlowLink {
  // Sockets of a network namespace that is gone with them.
  SlowLink() {
    const Fd own(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!own || ::unshare(CLONE_NEWNET) != 0) return;
    // 500 bytes in 2 ms; the bucket holds one packet of the link's largest.
    const bool made = std::system(
                          "ip link set lo up mtu 600 2>/dev/null && "
                          "tc qdisc add dev lo root tbf rate 2mbit burst 620 limit 100000 2>/dev/null") == 0;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (made) {
      in.reset(::socket(AF_INET, SOCK_DGRAM, 0));
      out.reset(::socket(AF_INET, SOCK_DGRAM, 0));
      (void)::bind(in.get(), reinterpret_cast<sockaddr*>(&address), size);
      ::getsockname(in.get(), reinterpret_cast<sockaddr*>(&address), &size);
      (void)::connect(out.get(), reinterpret_cast<sockaddr*>(&address), size);
    }
    if (::setns(own.get(), CLONE_NEWNET) != 0) std::abort();
  }
  Fd in, out;
};

TEST_P(BpfBystander, HasNoPartInAPacketFromOutside) {
  const SlowLink link;
  if (!link.in) GTEST_SKIP() << "no network namespace with a slow link can be made (iproute2, CONFIG_NET_SCH_TBF)";
  constexpr int packets = 40;
  Role waiter([&](Role&) {
    test::pin_to_first_cpu();
    const std::array<char, 472> bytes{};
    for (int i = 0; i < packets; ++i) ::send(link.out.get(), bytes.data(), bytes.size(), 0);
    char byte = 0;
    for (int i = 0; i < packets; ++i) ::recv(link.in.get(), &byte, 1, 0);
  });
  expect_nobody(waiter, SYS_recvfrom, packets, true);
}

TEST_P(BpfBystander, HasNoPartInASignal) {
  Role waiter([](Role&) {
    std::signal(SIGUSR1, [](int) {});
    test::pin_to_first_cpu();
    ::syscall(SYS_pause);
  });
  Role loop([kind = GetParam()](Role&) { spin(kind); });
  watch(loop);
  watch(waiter);
  loop.go();
  waiter.go();
  ASSERT_TRUE(find_block(waiter.pid(), SYS_pause));
  ::kill(waiter.pid(), SIGUSR1);
  ASSERT_TRUE(find(What::woken, waiter.pid()));
  EXPECT_EQ(record_.waker.tid, ::gettid());
  EXPECT_EQ(record_.waker.call, SYS_kill);
}

TEST_P(BpfBystander, HasNoPartInADiskRead) {
  std::array<char, 32> name{"/var/tmp/bpf_waker_XXXXXX"};
  const Fd file(::mkstemp(name.data()));
  ASSERT_TRUE(file);
  const std::vector<char> block(1 << 20, 'x');
  ASSERT_EQ(::write(file.get(), block.data(), block.size()), static_cast<ssize_t>(block.size()));
  ::fsync(file.get());
  const Fd direct(::open(name.data(), O_RDONLY | O_DIRECT));
  ::unlink(name.data());
  if (!direct) GTEST_SKIP() << "no direct I/O on the file system of /var/tmp";
  Role waiter([&](Role&) {
    test::pin_to_first_cpu();
    void* buffer = std::aligned_alloc(4096, 1 << 16);
    for (int i = 0; i < 16; ++i) (void)!::pread(direct.get(), buffer, 1 << 16, i << 16);
  });
  Role loop([kind = GetParam()](Role&) { spin(kind); });
  watch(loop);
  watch(waiter);
  loop.go();
  waiter.go();
  const pid_t pid = waiter.pid();
  waiter.end();
  for (const BpfRecord& r : all()) {
    if (r.what == What::woken && r.tid == pid) {
      EXPECT_NE(r.waker.tid, loop.pid()) << "call " << r.waker.call;
    }
  }
}

}  // namespace
}  // namespace swapd::sys
