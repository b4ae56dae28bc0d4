// The managed set, the slots and the ring of the kernel's tracer. Who woke whom is in bpf_waker_test.cpp.
#include "sys/bpf/bpf_tracer.h"

#include <sys/epoll.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "bpf_fixture.h"
#include "programs/pid_namespace.h"

namespace swapd::sys {
namespace {

using test::eventually;
using test::Pipe;
using test::read_byte;
using test::Role;
using test::state_of;
using test::write_byte;

using Bpf = test::BpfTest;

// The value of a line of /proc/TID/status.
long status_of(pid_t tid, const std::string& key) {
  std::ifstream file("/proc/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return std::stol(line.substr(key.size() + 1));
  return -1;
}

TEST_F(Bpf, AnUnwatchedThreadHasATrueSlotAndNoRecord) {
  const Pipe pipe;
  Role waiter([&](Role& role) {
    read_byte(pipe.in.get());
    role.word();
  });
  ASSERT_TRUE(eventually([&] { return state_of(waiter.pid()) == 'S'; }));
  ASSERT_TRUE(tracer_->manage(waiter.pid()));
  EXPECT_EQ(tracer_->slot(waiter.pid())->phase, Phase::unknown);
  const Time before = std::chrono::steady_clock::now();
  tracer_->tell_time(before);
  waiter.go();
  ASSERT_TRUE(eventually([&] {
    const auto slot = tracer_->slot(waiter.pid());
    return slot && slot->phase == Phase::blocked && slot->args[0] == static_cast<std::uint64_t>(pipe.in.get());
  }));
  auto slot = tracer_->slot(waiter.pid());
  EXPECT_EQ(slot->call, SYS_read);
  EXPECT_EQ(slot->args[2], 1U);
  EXPECT_FALSE(slot->compat);
  EXPECT_GE(slot->blocked_at, before);  // which nobody looked at the clock for
  EXPECT_LT(slot->blocked_at, before + std::chrono::microseconds(1));
  EXPECT_GT(slot->cpu.count(), 0);
  EXPECT_EQ(slot->waker.tid, ::gettid());  // of the wait for the first word
  EXPECT_EQ(slot->waker.call, SYS_write);
  EXPECT_EQ(slot->order, 0U);  // nobody counts ours
  EXPECT_FALSE(slot->watched);
  EXPECT_TRUE(all().empty());

  ASSERT_TRUE(tracer_->watch(waiter.pid(), true, true));
  write_byte(pipe.out.get());
  ASSERT_TRUE(find(What::woken, waiter.pid()));
  EXPECT_EQ(record_.blocked_at, slot->blocked_at);
  ASSERT_TRUE(find_block(waiter.pid(), SYS_read));
  ASSERT_TRUE(tracer_->watch(waiter.pid(), false, false));
  ASSERT_TRUE(tracer_->unmanage(waiter.pid()));
  EXPECT_FALSE(tracer_->manages(waiter.pid()));
  EXPECT_EQ(tracer_->slot(waiter.pid()).error().code(), ESRCH);
  waiter.go();
  waiter.end();
  EXPECT_TRUE(all().empty());
}

TEST_F(Bpf, PreemptionIsNoBlock) {
  const auto spin = [](Role&) {
    test::pin_to_first_cpu();
    for (;;) asm volatile("");
  };
  Role watched(spin), rival(spin);
  watch(watched);
  watched.go();
  rival.go();
  const pid_t tid = watched.pid();
  ASSERT_TRUE(eventually([&] { return status_of(tid, "nonvoluntary_ctxt_switches") >= 5; }));
  EXPECT_EQ(tracer_->slot(tid)->phase, Phase::running);
  // Its move to the other CPU may be a wait, made in the call that asked for it.
  for (const BpfRecord& r : all()) {
    if (r.what == What::blocked) {
      EXPECT_EQ(r.call, SYS_sched_setaffinity);
    }
  }
}

TEST_F(Bpf, ChildrenAreManagedFromTheirFirstBlock) {
  const Pipe pipe, tids;
  Role parent([&](Role&) {
    if (::fork() == 0) {
      std::thread thread([&] {
        tids.tell_tid();
        ::syscall(SYS_pause);
      });
      read_byte(pipe.in.get());
      ::_exit(0);
    }
    ::waitpid(-1, nullptr, 0);
  });
  watch(parent);
  parent.go();
  ASSERT_TRUE(find([&](const BpfRecord& r) { return r.what == What::fork && r.parent == parent.pid(); }));
  const pid_t child = record_.tid;
  EXPECT_EQ(record_.tgid, child);
  EXPECT_FALSE(record_.without_slot);
  EXPECT_TRUE(tracer_->manages(child));
  std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
  std::string word;
  for (int field = 1; field <= 22; ++field) stat >> word;
  EXPECT_EQ(std::to_string(record_.start_time), word);
  const pid_t thread = tids.told_tid();
  ASSERT_TRUE(find(What::fork, thread));
  EXPECT_EQ(record_.parent, child);
  EXPECT_EQ(record_.tgid, child);
  EXPECT_TRUE(rests_in(child, SYS_read));
  EXPECT_TRUE(rests_in(thread, SYS_pause));
  write_byte(pipe.out.get());
  ASSERT_TRUE(find(What::exit, child));
  EXPECT_EQ(record_.tgid, child);
  EXPECT_GT(record_.cpu.count(), 0);
  parent.end();
  for (const pid_t gone : {child, thread}) EXPECT_EQ(tracer_->slot(gone).error().code(), ESRCH);
}

TEST_F(Bpf, ExitFreesTheSlot) {
  open({.slots = 32});
  ASSERT_TRUE(tracer_);
  Role parent([](Role&) {
    for (int i = 0; i < 200; ++i) {
      if (::fork() == 0) ::_exit(0);
      ::waitpid(-1, nullptr, 0);
    }
  });
  watch(parent);
  parent.go();
  parent.end();
  EXPECT_EQ(tracer_->without_slot(), 0U);
  EXPECT_EQ(tracer_->lost(), 0U);
}

TEST_F(Bpf, ChildrenWithoutASlotAreCounted) {
  open({.slots = 32});
  ASSERT_TRUE(tracer_);
  const Pipe pipe;
  Role parent([&](Role& role) {
    for (int i = 0; i < 40; ++i) {
      if (test::bare_fork() != 0) continue;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      read_byte(pipe.in.get());
      ::_exit(0);
    }
    role.answer();
    for (int i = 0; i < 40; ++i) write_byte(pipe.out.get());
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
  });
  watch(parent);
  parent.go();
  parent.heard();
  EXPECT_EQ(tracer_->without_slot(), 9U);  // 31 places beside the parent's
  parent.end();
}

TEST_F(Bpf, ExecByAnotherThreadMovesTheSlot) {
  const Pipe tids;
  Role process([&](Role&) {
    std::thread([&] {
      tids.tell_tid();
      ::execl("/bin/sleep", "sleep", "100", nullptr);
    }).join();
  });
  watch(process);
  process.go();
  const pid_t thread = tids.told_tid();
  ASSERT_TRUE(find(What::fork, thread));
  EXPECT_EQ(record_.parent, process.pid());
  ASSERT_TRUE(find(What::exec, process.pid()));
  EXPECT_EQ(record_.former_tid, thread);
  EXPECT_FALSE(tracer_->manages(thread));
  EXPECT_TRUE(rests_in(process.pid(), SYS_clock_nanosleep));
}

TEST_F(Bpf, AFullRingCountsItsLosses) {
  open({.ring_bytes = 4096});
  ASSERT_TRUE(tracer_);
  const Pipe there, back;
  Role pong([&](Role& role) {
    for (int i = 0; i < 200; ++i) {
      read_byte(there.in.get());
      write_byte(back.out.get());
    }
    role.word();
  });
  watch(pong);
  pong.go();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(eventually([&] { return state_of(pong.pid()) == 'S'; }));
    write_byte(there.out.get());
    read_byte(back.in.get());
  }
  EXPECT_GT(tracer_->lost(), 0U);
  const std::size_t held = all().size();
  EXPECT_GT(held, 20U);
  EXPECT_LE(held, 4096U / 96);
  const pid_t tid = pong.pid();
  pong.go();
  pong.end();
  EXPECT_TRUE(find(What::exit, tid));  // there is room again
}

// Records that are not urgent do not wake the reader, until enough of them are there.
TEST_F(Bpf, TheReaderIsWokenWhenItMatters) {
  open({.wake_at_bytes = std::size_t{20} * 96});
  ASSERT_TRUE(tracer_);
  const Pipe there, back;
  Role pong([&](Role&) {
    for (;;) {
      read_byte(there.in.get());
      write_byte(back.out.get());
    }
  });
  watch(pong);
  ASSERT_TRUE(tracer_->watch(pong.pid(), true, false));
  pong.go();
  const Fd epoll(::epoll_create1(0));
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, tracer_->fd(), &event), 0);
  while (::epoll_wait(epoll.get(), &event, 1, 0) > 0) (void)all();
  const auto round = [&] {
    write_byte(there.out.get());
    read_byte(back.in.get());
    return eventually([&] { return state_of(pong.pid()) == 'S'; });
  };
  ASSERT_TRUE(rests_in(pong.pid(), SYS_read));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(round());
  EXPECT_EQ(::epoll_wait(epoll.get(), &event, 1, 0), 0);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(round());
  EXPECT_EQ(::epoll_wait(epoll.get(), &event, 1, 10000), 1);
  (void)all();
  EXPECT_EQ(::epoll_wait(epoll.get(), &event, 1, 0), 0);
  ASSERT_TRUE(tracer_->watch(pong.pid(), true, true));
  ASSERT_TRUE(round());
  EXPECT_EQ(::epoll_wait(epoll.get(), &event, 1, 10000), 1);
}

#ifdef __x86_64__
TEST_F(Bpf, A32BitCallIsMarked) {
  Role waiter([](Role&) {
    int result = 29;  // pause, in the 32-bit table
    asm volatile("int $0x80" : "+a"(result) : "b"(0x12345678) : "memory", "r8", "r9", "r10", "r11");
  });
  watch(waiter);
  waiter.go();
  if (!find([&](const BpfRecord& r) {
        return r.tid == waiter.pid() && ((r.what == What::blocked && r.call != SYS_read) || r.what == What::exit);
      }) ||
      record_.what == What::exit)
    GTEST_SKIP() << "the kernel takes no 32-bit calls (CONFIG_IA32_EMULATION)";
  EXPECT_TRUE(record_.compat);
  EXPECT_EQ(record_.call, 29);
  EXPECT_EQ(record_.args[0], 0x12345678U);
  EXPECT_TRUE(tracer_->slot(waiter.pid())->compat);
}
#endif

TEST_F(Bpf, WhatIsGoneIsNotManaged) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ASSERT_TRUE(eventually([&] { return state_of(pid) == 'Z'; }));
  EXPECT_EQ(tracer_->manage(pid).error().code(), ESRCH);  // a zombie
  ::waitpid(pid, nullptr, 0);
  for (const pid_t tid : {pid, 0, -1, 1 << 30}) {
    EXPECT_EQ(tracer_->manage(tid).error().code(), ESRCH);
    EXPECT_FALSE(tracer_->manages(tid));
  }
  EXPECT_EQ(tracer_->watch(pid, true, true).error().code(), ESRCH);
  EXPECT_EQ(tracer_->unmanage(pid).error().code(), ESRCH);
}

// All of this in a pid namespace: ids are those of the namespace. (A thread that takes its process's id by an exec
// cannot be followed there.)
using BpfPidNamespace = test::BpfTest;  // skips where BPF is not to be had

TEST_F(BpfPidNamespace, TheSameIsSeenThere) {
  const auto command = test::in_pid_namespace({std::filesystem::read_symlink("/proc/self/exe"),
                                               "--gtest_filter=Bpf.*-*ExecByAnotherThread*", "--gtest_brief=1"});
  std::vector<const char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(word.c_str());
  words.push_back(nullptr);
  const Pipe said;
  const pid_t child = test::bare_fork();
  if (child == 0) {
    ::dup2(said.out.get(), STDOUT_FILENO);
    ::execv(words[0], const_cast<char**>(words.data()));
    ::_exit(127);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::array<char, 65536> text{};  // what a pipe holds
  ASSERT_GT(::read(said.in.get(), text.data(), text.size() - 1), 0);
  int tests = -1;  // all but the one
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  for (int i = 0; i < unit.total_test_suite_count(); ++i)
    if (const auto* suite = unit.GetTestSuite(i); std::string_view(suite->name()) == "Bpf")
      tests += suite->total_test_count();
  const std::string all_passed = "[  PASSED  ] " + std::to_string(tests) + " tests";
  EXPECT_NE(std::string_view(text.data()).find(all_passed), std::string_view::npos) << text.data();
}

// What is written while the reader naps does not wake it, and is there when it comes.
TEST_F(Bpf, ANapIsNotDisturbed) {
  const Pipe pipe;
  Role waiter([&](Role&) {
    read_byte(pipe.in.get());
    read_byte(pipe.in.get());
  });
  watch(waiter);
  waiter.go();
  ASSERT_TRUE(find_block(waiter.pid(), SYS_read));
  while (tracer_->read(&record_, 1) != 0) {
  }
  const Fd set(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
  ASSERT_EQ(::epoll_ctl(set.get(), EPOLL_CTL_ADD, tracer_->fd(), &event), 0);
  tracer_->nap(true);
  while (::epoll_wait(set.get(), &event, 1, 50) > 0) {  // what it says of the past comes by an interrupt, a little late
  }
  write_byte(pipe.out.get());
  ASSERT_TRUE(rests_in(waiter.pid(), SYS_read));
  EXPECT_EQ(::epoll_wait(set.get(), &event, 1, 50), 0);
  tracer_->nap(false);
  EXPECT_TRUE(find(What::woken, waiter.pid()));
  write_byte(pipe.out.get());
  EXPECT_EQ(::epoll_wait(set.get(), &event, 1, 10000), 1);
}

}  // namespace
}  // namespace swapd::sys
