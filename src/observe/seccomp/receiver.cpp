#include "observe/seccomp/receiver.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/ignore_gone.h"
#include "observe/seccomp/call_ring.h"
#include "observe/seccomp/own_listener.h"
#include "sys/process/futex.h"
#include "sys/process/self_process.h"
#include "sys/sched/scheduler.h"

namespace swapd::observe {
namespace {

constexpr int ordinary_nice = -20;
// What the loop and two small callbacks need. The sanitizers keep more there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t stack_size = 1 << 20;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::size_t stack_size = 1 << 20;
#else
constexpr std::size_t stack_size = 64 << 10;
#endif
#else
constexpr std::size_t stack_size = 64 << 10;
#endif

// The signal that brings a receiver out of a blocked RECV. It does nothing else; the other threads never get one,
// because it is sent to the thread.
int stop_signal() { return SIGRTMAX - 1; }

void install_stop_signal() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = 0;  // no SA_RESTART: RECV shall come back
    ::sigaction(stop_signal(), &action, nullptr);
  });
}

std::function<void(pid_t)>& told_of_own_listeners() {
  static std::function<void(pid_t)> told;
  return told;
}

}  // namespace

void on_own_listener(std::function<void(pid_t)> told) { told_of_own_listeners() = std::move(told); }

struct Receiver::Impl {
  Fd listener;
  ListenerSlot* slot;
  Callbacks callbacks;
  bool poll_first;
  std::atomic<bool> told{true};
  std::unique_ptr<CallFilter> filter;

  CallRing ring;
  std::atomic<std::uint64_t> received{0};
  std::atomic<std::uint64_t> lost{0};
  std::atomic<pid_t> last_caller{0};
  std::atomic<bool> urgent{false};
  std::atomic<bool> stopping{false};
  std::atomic<std::int32_t> ended{0};  // a futex
  std::atomic<pid_t> tid{0};
  pthread_t thread{};
  bool started = false;
  sys::LinuxScheduler scheduler;
  cpu_set_t own_cpus{};

  void run();
  void loop();
  void handle(const sys::Notification& notification);
  void stop();
};

// The hot path. Everything after the answer happens while the target already runs again.
void Receiver::Impl::handle(const sys::Notification& notification) {
  // Before the answer: SYNC hands the CPU to the target with it, and the stamp would be late by that.
  const Time time = std::chrono::steady_clock::now();
  slot->open_id.store(notification.id, std::memory_order_release);
  if (!filter || !filter->should_delay(notification))
    ignore_gone(sys::answer_continue(listener.get(), notification.id));  // ENOENT: killed, or a signal ended the call
  slot->last_id.store(notification.id, std::memory_order_release);
  slot->open_id.store(0, std::memory_order_release);

  received.store(received.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  last_caller.store(notification.tid, std::memory_order_relaxed);
  if (notification.nr == SYS_seccomp) {
    if (const auto& tell = told_of_own_listeners()) tell(notification.tid);
    return;
  }
  if (!told.load(std::memory_order_relaxed)) return;
  if (!ring.push({time, notification.tid, notification.nr, notification.args})) {
    lost.store(lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return;
  }
  if (urgent.load(std::memory_order_relaxed) && ring.was_empty() && callbacks.wake) callbacks.wake();
}

void Receiver::Impl::loop() {
  while (!stopping.load(std::memory_order_relaxed)) {
    if (poll_first) {
      if (Status there = sys::await_notification(listener.get()); !there) {
        if (there.error().code() == EINTR) continue;
        return;
      }
      if (sys::hung_up(listener.get())) return;
    }
    const auto notification = sys::receive(listener.get());
    if (notification) {
      handle(*notification);
      continue;
    }
    switch (notification.error().code()) {
      case EINTR:
        break;
      case ENOENT:  // that target is gone, or all are
        if (sys::hung_up(listener.get())) return;
        break;
      default:
        return;
    }
  }
}

void Receiver::Impl::run() {
  sigset_t all_but_ours;
  ::sigfillset(&all_but_ours);
  ::sigdelset(&all_but_ours, stop_signal());
  ::pthread_sigmask(SIG_SETMASK, &all_but_ours, nullptr);
  sys::name_thread("swapd-recv");
  (void)sys::set_thread_nice(0, ordinary_nice);  // the daemon warns of missing privileges once, at its start
  tid.store(sys::own_tid());
  tid.notify_all();
  loop();
  if (!stopping.load() && callbacks.finished) callbacks.finished();
  ended.store(1);
  sys::futex_wake(ended);
}

void Receiver::Impl::stop() {
  if (!std::exchange(started, false)) return;
  stopping.store(true);
  // The signal may come between the look at `stopping` and RECV, and is wasted then: again until the thread has ended.
  while (ended.load() == 0) {
    ::pthread_kill(thread, stop_signal());
    sys::futex_wait(ended, 0, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
  }
  ::pthread_join(thread, nullptr);
}

Receiver::Receiver(Fd listener, ListenerSlot* slot, Callbacks callbacks, bool poll_first)
    : impl_(std::make_unique<Impl>()) {
  impl_->listener = std::move(listener);
  impl_->slot = slot;
  impl_->callbacks = std::move(callbacks);
  impl_->poll_first = poll_first;
}

Receiver::~Receiver() { impl_->stop(); }
void Receiver::stop() { impl_->stop(); }

Status Receiver::start() {
  install_stop_signal();
  (void)sys::set_sync_wake_up(impl_->listener.get());  // since 6.6; slower without, and right
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, std::max(stack_size, static_cast<std::size_t>(PTHREAD_STACK_MIN)));
  const int rc = ::pthread_create(
      &impl_->thread, &attributes,
      [](void* self) -> void* {
        static_cast<Impl*>(self)->run();
        return nullptr;
      },
      impl_.get());
  ::pthread_attr_destroy(&attributes);
  if (rc != 0) return Error(rc, "starting a receiver");
  impl_->started = true;
  impl_->tid.wait(0);
  if (const auto cpus = impl_->scheduler.affinity(impl_->tid.load())) {
    impl_->own_cpus = *cpus;
  } else if (!cpus.error().gone()) {
    return cpus.error();
  }
  return Done{};
}

std::size_t Receiver::drain(RawCall* out, std::size_t most) { return impl_->ring.pop(out, most); }
std::uint64_t Receiver::received() const { return impl_->received.load(std::memory_order_relaxed); }
std::uint64_t Receiver::lost() const { return impl_->lost.load(std::memory_order_relaxed); }
pid_t Receiver::last_caller() const { return impl_->last_caller.load(std::memory_order_relaxed); }
pid_t Receiver::tid() const { return impl_->tid.load(); }
Duration Receiver::cpu_time() const { return sys::own_thread_cpu_time(tid()); }
int Receiver::listener() const { return impl_->listener.get(); }
void Receiver::set_filter(std::unique_ptr<CallFilter> filter) { impl_->filter = std::move(filter); }
void Receiver::keep_to_itself() { impl_->told.store(false, std::memory_order_relaxed); }
void Receiver::set_urgent(bool urgent) { impl_->urgent.store(urgent, std::memory_order_relaxed); }

Status Receiver::follow(int cpu, int priority) {
  // After the thread's end its tid may be another's.
  if (impl_->ended.load() != 0 || !impl_->started) return Error(ESRCH, "the receiver has ended");
  const pid_t tid = impl_->tid.load();
  SchedAttr attr;
  cpu_set_t cpus = impl_->own_cpus;
  if (cpu < 0) {
    attr.nice = ordinary_nice;
  } else {
    attr.policy = SchedPolicy::fifo;
    attr.rt_priority = static_cast<std::uint8_t>(priority);
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  }
  // Real-time on the wrong CPU is what hurts (docs/design.md, Threads), so: there first, then real-time; and the other
  // way round.
  const auto move = [&] { return impl_->scheduler.set_affinity(tid, cpus); };
  const auto change = [&] { return impl_->scheduler.set(tid, attr); };
  Status first = cpu < 0 ? change() : move();
  if (!first) return std::move(first).error().in("having a receiver follow a member");
  Status second = cpu < 0 ? move() : change();
  if (!second) return std::move(second).error().in("having a receiver follow a member");
  return Done{};
}

}  // namespace swapd::observe
