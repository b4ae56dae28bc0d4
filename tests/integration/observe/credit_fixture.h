// The real kernel, observer and model, and processes that do what they are told: for tests of who gets credit.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <map>

#include "model/model.h"
#include "observe/bpf/bpf_observer.h"
#include "sys/netlink/sock_diag.h"

namespace swapd::observe::test {

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
    return pipe_end(st.st_ino, PipeEnd::write);
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
    Observer::Hooks hooks{.identify =
                              [this](pid_t tid) {
                                const auto found = members_.find(tid);
                                return found == members_.end() ? std::optional<Member>{} : std::optional(found->second);
                              },
                          .ask =
                              [this](const WaitQuestion& q) {
                                waits_.push_back(q);
                                ++questions_;
                              },
                          .ask_access = [this](const AccessQuestion& q) { accesses_.push_back(q); },
                          .lifecycle = [](const sys::ProcEvent&) {},
                          .lost = [](std::uint64_t) {},
                          .following = [this](const Status& status) { following_.push_back(status.ok()); }};
    observer_.emplace(std::move(opened).value(), procfs_, resolver_, std::move(hooks));
    ASSERT_TRUE(observer_->listen(loop_));
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
      loop_.wait(std::chrono::milliseconds(5));
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
  sys::EventLoop loop_;
  std::map<pid_t, Member> members_;
  std::vector<WaitQuestion> waits_;
  int questions_ = 0;  // of waits, so far
  std::vector<AccessQuestion> accesses_;
  std::vector<bool> following_;  // what was told of it
  model::Model model_{model::Settings{}};
  std::optional<BpfObserver> observer_;
  Woken woken_;
  int wakes_ = 0;
};

}  // namespace swapd::observe::test
