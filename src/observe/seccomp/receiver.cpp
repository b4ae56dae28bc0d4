#include "observe/seccomp/receiver.h"

#include <sys/syscall.h>

#include <utility>

#include "base/ignore_gone.h"
#include "observe/seccomp/call_ring.h"
#include "observe/seccomp/interruptible_thread.h"
#include "observe/seccomp/own_listener.h"
#include "sys/process/self_process.h"
#include "sys/sched/scheduler.h"

namespace swapd::observe {
namespace {

constexpr int ordinary_nice = -20;
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
  sys::LinuxScheduler scheduler;
  cpu_set_t own_cpus{};
  InterruptibleThread thread;  // the last: it has ended before the others go

  void run();
  void loop();
  void handle(const sys::Notification& notification);
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
  while (!thread.stopping()) {
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
  loop();
  if (!thread.stopping() && callbacks.finished) callbacks.finished();
}

Receiver::Receiver(Fd listener, ListenerSlot* slot, Callbacks callbacks, bool poll_first)
    : impl_(std::make_unique<Impl>()) {
  impl_->listener = std::move(listener);
  impl_->slot = slot;
  impl_->callbacks = std::move(callbacks);
  impl_->poll_first = poll_first;
}

Receiver::~Receiver() { impl_->thread.stop(); }
void Receiver::stop() { impl_->thread.stop(); }

Status Receiver::start() {
  (void)sys::set_sync_wake_up(impl_->listener.get());  // since 6.6; slower without, and right
  if (Status started = impl_->thread.start("swapd-recv", ordinary_nice, [this] { impl_->run(); }); !started)
    return std::move(started).error().in("starting a receiver");
  if (const auto cpus = impl_->scheduler.affinity(tid())) {
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
pid_t Receiver::tid() const { return impl_->thread.tid(); }
Duration Receiver::cpu_time() const { return sys::own_thread_cpu_time(tid()); }
int Receiver::listener() const { return impl_->listener.get(); }
void Receiver::set_filter(std::unique_ptr<CallFilter> filter) { impl_->filter = std::move(filter); }
void Receiver::keep_to_itself() { impl_->told.store(false, std::memory_order_relaxed); }
void Receiver::set_urgent(bool urgent) { impl_->urgent.store(urgent, std::memory_order_relaxed); }

Status Receiver::follow(int cpu, int priority) {
  // After the thread's end its tid may be another's.
  if (!impl_->thread.running()) return Error(ESRCH, "the receiver has ended");
  const pid_t tid = impl_->thread.tid();
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
