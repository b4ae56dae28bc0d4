// Who gets credit for the end of a wait: the thread whose call was on what was awaited, and nobody else. The real
// kernel, observer and model; the providers are known beforehand and stand at K.
#include "observe/bpf_observer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>

#include "model/model.h"
#include "sys/sock_diag.h"

namespace swapd::observe {
namespace {

constexpr std::uint16_t base_confidence = 20;  // the paper's K

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) std::abort();
    in.reset(ends[0]);
    out.reset(ends[1]);
  }
  void put() const { (void)!::write(out.get(), "x", 1); }
  void take() const {
    char byte = 0;
    while (::read(in.get(), &byte, 1) < 0) {
    }
  }
  [[nodiscard]] Resource writers() const {
    struct stat st {};
    ::fstat(in.get(), &st);
    return {ResourceKind::pipe, {st.st_ino, 1}};
  }
  Fd in, out;
};

// A process that does what it is told to once it has got a word, and then sleeps.
class Actor {
 public:
  explicit Actor(const std::function<void()>& play) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGUSR1, [](int) {});
    word_.take();
    play();
    for (;;) ::pause();
  }
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  ~Actor() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void go() const { word_.put(); }

 private:
  Pipe word_;
  pid_t pid_ = -1;
};

class Credit : public ::testing::Test {
 protected:
  void SetUp() override { begin({}); }
  void begin(const sys::BpfOptions& options) {
    auto opened = sys::BpfTracer::open(options);
    if (!opened) GTEST_SKIP() << opened.error().text();
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    Observer::Hooks hooks{.identify =
                              [this](pid_t tid) {
                                const auto found = members_.find(tid);
                                return found == members_.end() ? std::optional<Member>{} : std::optional(found->second);
                              },
                          .ask = [this](const WaitQuestion& q) { waits_.push_back(q); },
                          .ask_access = [this](const AccessQuestion& q) { accesses_.push_back(q); },
                          .lifecycle = [](const sys::ProcEvent&) {},
                          .lost = [](std::uint64_t) {}};
    observer_.emplace(std::move(opened).value(), procfs_, resolver_, std::move(hooks), epoll_.get());
  }

  ThreadId join(const Actor& actor) {
    const ThreadId id = *procfs_.thread_id(actor.pid());
    members_[actor.pid()] = {id, actor.pid()};
    model_.apply(Enrolled{.time = Time{}, .thread = id, .tgid = actor.pid(), .uid = 0, .base = {}});
    EXPECT_TRUE(observer_->manage({id, actor.pid()}));
    return id;
  }

  // Feeds the model until the condition holds; the last wake of `waiter` is kept.
  bool until(ThreadId waiter, const std::function<bool()>& condition) {
    const Time deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (;;) {
      std::vector<Event> events;
      observer_->drain(std::chrono::steady_clock::now(), events);
      for (const WaitQuestion& q : std::exchange(waits_, {})) observer_->answer({q, resolver_.full(q.site)}, events);
      for (const AccessQuestion& q : std::exchange(accesses_, {}))
        observer_->answer({q, resolver_.full_access(q.site)}, events);
      for (const Event& event : events) {
        if (const auto* woken = std::get_if<Woken>(&event); woken != nullptr && woken->thread == waiter) {
          woken_ = *woken;
          ++wakes_;
        }
        model_.apply(event);
      }
      if (condition()) return true;
      if (std::chrono::steady_clock::now() > deadline) return false;
      pollfd ready{epoll_.get(), POLLIN, 0};
      ::poll(&ready, 1, 5);
    }
  }
  bool waits_for(ThreadId waiter, const Resource& resource) {
    return until(waiter, [&] {
      const auto view = model_.thread(waiter);
      return view && view->state == model::RunState::blocked &&
             std::ranges::find(view->awaited, resource) != view->awaited.end();
    });
  }
  bool wakes(ThreadId waiter) {
    const int before = wakes_;
    return until(waiter, [&] { return wakes_ > before; });
  }
  void know(const Resource& resource, std::initializer_list<ThreadId> providers) {
    for (const ThreadId id : providers)
      model_.apply(Accessed{.time = Time{}, .thread = id, .resource = resource, .evidence = Evidence::accessed});
  }
  std::map<pid_t, int> confidences(const Resource& resource) {
    std::map<pid_t, int> out;
    for (const auto& p : model_.providers(resource, std::nullopt)) out[p.thread.tid] = p.confidence;
    return out;
  }

  sys::Procfs procfs_;
  sys::SockDiag diag_;
  Resolver resolver_{procfs_, diag_};
  Fd epoll_;
  std::map<pid_t, Member> members_;
  std::vector<WaitQuestion> waits_;
  std::vector<AccessQuestion> accesses_;
  model::Model model_{model::Settings{}};
  std::optional<BpfObserver> observer_;
  Woken woken_;
  int wakes_ = 0;
};

TEST_F(Credit, GoesToTheOneThatWroteAndNotToTheOther) {
  const Pipe pipe;
  const Actor waiter([&] { pipe.take(); }), writer([&] { pipe.put(); }), other([] {});
  const ThreadId w = join(waiter), p = join(writer), o = join(other);
  know(pipe.writers(), {p, o});
  observer_->watch({w, w.tid}, true);
  waiter.go();
  ASSERT_TRUE(waits_for(w, pipe.writers()));
  writer.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.by, p);
  EXPECT_EQ(woken_.through, pipe.writers());
  EXPECT_EQ(confidences(pipe.writers()),
            (std::map<pid_t, int>{{p.tid, base_confidence + 1}, {o.tid, base_confidence}}));
}

// Nobody was watched, so nothing was followed; both have begun to wait meanwhile.
class FollowedLate : public Credit {
 protected:
  void SetUp() override { begin({.follow = false}); }
};

TEST_F(FollowedLate, AWaitThatHasBegunBeforeIsToldAndItsEndCredited) {
  const Pipe pipe;
  const Actor waiter([&] { pipe.take(); }), writer([&] { pipe.put(); }), other([] {});
  const ThreadId w = join(waiter), p = join(writer), o = join(other);
  know(pipe.writers(), {p, o});
  waiter.go();
  ASSERT_TRUE(until(w, [&] {
    const auto call = procfs_.syscall(w.tid);
    return call && !call->running && call->nr == SYS_read && call->args[0] == static_cast<unsigned>(pipe.in.get());
  }));
  observer_->watch({w, w.tid}, true);
  ASSERT_TRUE(waits_for(w, pipe.writers()));
  writer.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.by, p);
  EXPECT_EQ(confidences(pipe.writers()),
            (std::map<pid_t, int>{{p.tid, base_confidence + 1}, {o.tid, base_confidence}}));
}

// Five seconds after the last was watched the observer asks to be called, and follows nobody any more.
TEST_F(FollowedLate, UntilNobodyIsWatchedForAWhile) {
  const Actor first([] {});
  const ThreadId f = join(first);
  std::vector<Event> events;
  observer_->drain(std::chrono::steady_clock::now(), events);
  EXPECT_EQ(observer_->deadline(), std::nullopt) << "nothing is followed";
  observer_->watch({f, f.tid}, true);
  observer_->drain(std::chrono::steady_clock::now(), events);
  observer_->unwatch(f);
  const Time now = std::chrono::steady_clock::now() + std::chrono::seconds(1);  // both looks are over
  observer_->drain(now, events);
  ASSERT_TRUE(observer_->deadline());
  EXPECT_GT(*observer_->deadline(), now + std::chrono::seconds(1));
  observer_->drain(*observer_->deadline(), events);
  EXPECT_EQ(observer_->deadline(), std::nullopt);
}

TEST_F(Credit, ATimeoutGivesNone) {
  const Pipe pipe;
  const Actor writer([] {}), other([] {}), waiter([&] {
    pollfd in{pipe.in.get(), POLLIN, 0};
    ::poll(&in, 1, 300);
  });
  const ThreadId w = join(waiter), p = join(writer), o = join(other);
  know(pipe.writers(), {p, o});
  observer_->watch({w, w.tid}, true);
  waiter.go();
  ASSERT_TRUE(waits_for(w, pipe.writers()));
  ASSERT_TRUE(wakes(w));
  EXPECT_TRUE(woken_.unrelated);
  EXPECT_EQ(confidences(pipe.writers()), (std::map<pid_t, int>{{p.tid, base_confidence}, {o.tid, base_confidence}}));
}

TEST_F(Credit, ASignalFromOutsideGivesNone) {
  const Pipe pipe;
  const Actor waiter([&] { pipe.take(); }), writer([] {});
  const ThreadId w = join(waiter), p = join(writer);
  know(pipe.writers(), {p});
  observer_->watch({w, w.tid}, true);
  waiter.go();
  ASSERT_TRUE(waits_for(w, pipe.writers()));
  ::kill(waiter.pid(), SIGUSR1);
  ASSERT_TRUE(wakes(w));
  EXPECT_TRUE(woken_.unrelated);
  EXPECT_EQ(confidences(pipe.writers()), (std::map<pid_t, int>{{p.tid, base_confidence}}));
}

// Even from the very provider: it has interrupted the wait, not ended it.
TEST_F(Credit, ASignalFromTheProviderGivesNone) {
  const Pipe pipe;
  const Actor waiter([&] { pipe.take(); }), writer([pid = waiter.pid()] { ::kill(pid, SIGUSR1); });
  const ThreadId w = join(waiter), p = join(writer);
  know(pipe.writers(), {p});
  observer_->watch({w, w.tid}, true);
  waiter.go();
  ASSERT_TRUE(waits_for(w, pipe.writers()));
  writer.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_TRUE(woken_.unrelated);
  EXPECT_EQ(confidences(pipe.writers()), (std::map<pid_t, int>{{p.tid, base_confidence}}));
}

TEST_F(Credit, ASignalThatWasWaitedForNamesItsSender) {
  const Actor waiter([] {
    sigset_t none;
    sigemptyset(&none);
    ::sigsuspend(&none);
  });
  const Actor sender([pid = waiter.pid()] { ::kill(pid, SIGUSR1); });
  const ThreadId w = join(waiter), s = join(sender);
  const Resource signal{ResourceKind::signal, {static_cast<std::uint64_t>(w.tid), w.start_time}};
  observer_->watch({w, w.tid}, true);
  waiter.go();
  ASSERT_TRUE(waits_for(w, signal));
  sender.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.by, s);
  EXPECT_EQ(confidences(signal), (std::map<pid_t, int>{{s.tid, base_confidence + 1}}));
}

TEST_F(Credit, ADisksCompletionGivesNone) {
  std::array<char, 40> name{"/var/tmp/bpf_observer_XXXXXX"};
  const Fd file(::mkstemp(name.data()));
  ASSERT_TRUE(file);
  const std::vector<char> block(1 << 20, 'x');
  ASSERT_EQ(::write(file.get(), block.data(), block.size()), static_cast<ssize_t>(block.size()));
  ::fsync(file.get());
  const Fd direct(::open(name.data(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  ::unlink(name.data());
  if (!direct) GTEST_SKIP() << "no direct I/O on the file system of /var/tmp";
  const Pipe pipe;
  const Actor waiter([&] {
    void* buffer = std::aligned_alloc(4096, 1 << 16);
    for (int i = 0; i < 16; ++i) (void)!::pread(direct.get(), buffer, 1 << 16, i << 16);
    pipe.take();
  });
  const Actor writer([] {});
  const ThreadId w = join(waiter), p = join(writer);
  know(pipe.writers(), {p});
  observer_->watch({w, w.tid}, true);
  waiter.go();
  ASSERT_TRUE(waits_for(w, pipe.writers()));  // all the reads are over
  EXPECT_GT(wakes_, 0);
  EXPECT_EQ(confidences(pipe.writers()), (std::map<pid_t, int>{{p.tid, base_confidence}}));
  EXPECT_EQ(model_.counts().providers, 1U);
}

// A worker that writes back ends the wait in syncfs(2): it is named in the next one, and nobody's confidence changes.
TEST_F(Credit, AKernelThreadIsNamedAndGetsNone) {
  std::array<char, 40> name{"/var/tmp/bpf_observer_XXXXXX"};
  const Fd file(::mkstemp(name.data()));
  ASSERT_TRUE(file);
  ::unlink(name.data());
  const Actor waiter([&] {
    for (int i = 0; i < 2000; ++i) {
      (void)!::pwrite(file.get(), "x", 1, static_cast<off_t>(i) * 4096);
      ::syncfs(file.get());
    }
  });
  const ThreadId w = join(waiter);
  observer_->watch({w, w.tid}, true);
  waiter.go();
  std::string comm;
  ASSERT_TRUE(until(w, [&] {
    const auto view = model_.thread(w);
    if (!view || view->awaited.empty() || view->awaited.front().kind != ResourceKind::kernel_work) return false;
    comm = procfs_.comm(static_cast<pid_t>(view->awaited.front().ids[0])).value_or("");
    return comm.starts_with("kworker") || comm.starts_with("jbd2");
  })) << comm;
  EXPECT_EQ(model_.counts().providers, 0U);
}

TEST_F(Credit, AFutexsWakerBecomesItsProvider) {
  auto* word =
      static_cast<std::uint32_t*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(word, MAP_FAILED);
  const Actor waiter([&] {
    for (;;) ::syscall(SYS_futex, word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
  });
  const Pipe again;
  const Actor waker([&] {
    for (;;) {
      ::syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
      again.take();
    }
  });
  const ThreadId w = join(waiter), p = join(waker);
  observer_->watch({w, w.tid}, true);
  waiter.go();
  Resource futex;
  ASSERT_TRUE(until(w, [&] {
    const auto view = model_.thread(w);
    if (!view || view->awaited.empty() || view->awaited.front().kind != ResourceKind::futex) return false;
    futex = view->awaited.front();
    return true;
  }));
  waker.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.by, p);
  ASSERT_TRUE(until(w, [&] { return confidences(futex).contains(p.tid); }));  // after the worker's look
  const int before = confidences(futex)[p.tid];
  ASSERT_TRUE(waits_for(w, futex));
  again.put();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(confidences(futex)[p.tid], before + 1);
  ::munmap(word, 4096);
}

// What nobody watches is written without waiting for other CPUs: its slot says blocked until it has one again.
TEST_F(Credit, WhoWasWokenBeforeItIsWatchedDoesNotWait) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two CPUs";
  cpu_set_t first, others = all;
  CPU_ZERO(&first);
  for (int cpu = 0; CPU_COUNT(&first) == 0; ++cpu)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &first);
  CPU_XOR(&others, &all, &first);
  ASSERT_EQ(::sched_setaffinity(0, sizeof others, &others), 0);
  const Pipe pipe, starts;
  const Actor waiter([&] {
    ::sched_setaffinity(0, sizeof first, &first);
    pipe.take();
  });
  const Actor hog([&] {
    ::sched_setaffinity(0, sizeof first, &first);
    const sched_param priority{.sched_priority = 1};
    ::sched_setscheduler(0, SCHED_FIFO, &priority);
    starts.put();
    for (;;) asm volatile("");
  });
  const ThreadId w = join(waiter);
  waiter.go();
  ASSERT_TRUE(until(w, [&] {
    const auto call = procfs_.syscall(w.tid);
    return call && !call->running && call->nr == SYS_read && call->args[0] == static_cast<unsigned>(pipe.in.get());
  }));
  hog.go();
  starts.take();
  pipe.put();
  observer_->watch({w, w.tid}, true);
  int drained = 0;
  ASSERT_TRUE(until(w, [&] { return ++drained == 2; }));  // both looks
  EXPECT_NE(model_.thread(w)->state, model::RunState::blocked);
  std::vector<Event> later;  // the slot still says blocked
  observer_->look(w, std::chrono::steady_clock::now(), later);
  EXPECT_TRUE(later.empty());
  EXPECT_EQ(procfs_.stat(w.tid)->state, 'R') << "it had its CPU before";
  ASSERT_EQ(::sched_setaffinity(0, sizeof all, &all), 0);
}

// A wait that was not told is known to a tick when it began; who hears of it later still hears in the right order.
TEST_F(Credit, AWaitThatWasSilentIsToldAfterTheEndOfTheOneBefore) {
  struct Shared {
    std::atomic<int> asked, taken;
  };
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = new (memory) Shared{};
  const Pipe pipe;
  const Actor waiter([&] {
    for (;;) {
      pipe.take();
      ++shared->taken;
    }
  });
  const Actor provider([&] {  // keeps its CPU
    for (int given = 0;;)
      for (; given < shared->asked; ++given) pipe.put();
  });
  const ThreadId w = join(waiter), p = join(provider);
  const auto rests = [&](int taken) {
    return until(w, [&] { return shared->taken == taken && procfs_.stat(w.tid)->state == 'S'; });
  };
  observer_->watch({w, w.tid}, true);
  waiter.go();
  provider.go();
  ASSERT_TRUE(waits_for(w, pipe.writers()));
  shared->asked = 1;
  ASSERT_TRUE(wakes(w));
  ASSERT_TRUE(rests(1));
  observer_->expect(w, p);
  // The provider may lose its CPU for a while: then the wait is told.
  bool silent = false;
  for (int round = 2; round < 200 && !silent; ++round) {
    shared->asked = round;
    while (shared->taken < round || procfs_.stat(w.tid)->state != 'S') ::sched_yield();
    silent = observer_->waits_silently(w);
    std::vector<Event> events;
    observer_->drain(std::chrono::steady_clock::now(), events);
    observer_->look(w, std::chrono::steady_clock::now(), events);
    Time last{};
    for (const Event& event : events) {
      const Time time = std::visit([](const auto& e) { return e.time; }, event);
      EXPECT_GE(time, last) << "round " << round << ", event " << event.index();
      last = std::max(last, time);
    }
  }
  EXPECT_TRUE(silent);
  ::munmap(memory, sizeof(Shared));
}

}  // namespace
}  // namespace swapd::observe
