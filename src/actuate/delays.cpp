#include "actuate/delays.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "base/ignore_gone.h"
#include "sys/process/self_process.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::actuate {
namespace {

constexpr int ordinary_nice = -20;

constexpr std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }
// These count at once however often they come: stops, what ends a program, and the C library's own, for which other
// threads of the process wait (setuid(2) of all threads, pthread_cancel(3)).
constexpr std::uint64_t never_wait = bit(SIGSTOP) | bit(SIGTSTP) | bit(SIGTTIN) | bit(SIGTTOU) | bit(SIGINT) |
                                     bit(SIGTERM) | bit(SIGQUIT) | bit(SIGHUP) | bit(32) | bit(33);

}  // namespace

Delays::Delays(const sys::Procfs& procfs, std::span<DelayedCall> memory, Duration slice)
    : procfs_(procfs), memory_(memory), slice_(slice) {
  free_.reserve(memory.size());
  for (std::size_t i = memory.size(); i-- > 0;) free_.push_back(static_cast<std::uint32_t>(i));
  heap_.reserve(memory.size());
  thread_ = std::thread([this] { run(); });
}

Delays::~Delays() { stop(); }

void Delays::end(bool release) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    leaving_ = leaving_ || !release;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Delays::hold(const Call& call, Time due, std::shared_ptr<Delayed> owner) {
  // A tracer that is there all the time is no reason to let it go. (A short delay is over before it is looked at.)
  const bool looked_at = call.by_turns || due - std::chrono::steady_clock::now() > slice_;
  const auto before = looked_at ? procfs_.interruption(call.tid) : Error(EAGAIN, "");
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || free_.empty()) return false;
    Held held{.call = call,
              .due = due,
              .since = {},
              .look = {},
              .place = free_.back(),
              .tracer = before ? before->tracer : 0,
              .owner = std::move(owner)};
    free_.pop_back();
    held.since = std::chrono::steady_clock::now();
    held.look = std::min(due, held.since + slice_);
    DelayedCall& written = memory_[held.place];
    written.slot.store(call.slot, std::memory_order_relaxed);
    written.due.store(due.time_since_epoch().count(), std::memory_order_relaxed);
    written.id.store(call.id, std::memory_order_release);
    const bool first = heap_.empty() || held.look < heap_.front().look;
    heap_.push_back(std::move(held));
    std::ranges::push_heap(heap_, Later());
    if (!first) return true;
  }
  changed_.notify_all();
  return true;
}

void Delays::look_again() {
  {
    const std::lock_guard lock(mutex_);
    again_ = true;
  }
  changed_.notify_all();
}

std::size_t Delays::held() const {
  const std::lock_guard lock(mutex_);
  return heap_.size() + taken_;
}

// True: it has gone on, or is over.
// A held call ends by what would end a blocking call: a signal that waits and is not blocked (what is ignored is not
// kept waiting), a debugger that comes, a freezer. A thread that cannot be looked at is not held.
bool Delays::goes_early(const Held& held, Time now) {
  const auto found = procfs_.interruption(held.call.tid);
  if (!found) return true;
  const bool patient = now - held.since < held.call.patience;
  if (const auto signals = patient ? found->signals & (~held.call.repeated | never_wait) : found->signals;
      signals != 0) {
    held.owner->disturbed(signals);
    return true;
  }
  return (found->tracer != 0 && found->tracer != held.tracer) || freezer_.freezes(held.call.tid);
}

bool Delays::look(Held& held, Time now) {
  if (!sys::still_valid(held.call.listener->get(), held.call.id)) {
    // If the guard has let it go, it was made.
    held.owner->ended(memory_[held.place].id.load(std::memory_order_acquire) == 0, now);
    return true;
  }
  held.due = held.owner->due(now);
  if (held.due <= now || goes_early(held, now)) {
    held.owner->ended(true, now);
    ignore_gone(sys::answer_continue(held.call.listener->get(), held.call.id));  // ENOENT: killed meanwhile
    return true;
  }
  held.look = std::min(held.due, now + slice_);
  return false;
}

void Delays::run() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  sys::name_thread("swapd-delay");
  (void)sys::set_thread_nice(0, ordinary_nice);
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  std::vector<Held> some;
  std::unique_lock lock(mutex_);
  for (;;) {
    const Time next = heap_.empty() ? Time::max() : heap_.front().look;
    if (!stopping_ && !again_) {
      if (next == Time::max())
        changed_.wait(lock);
      else if (next > std::chrono::steady_clock::now())
        changed_.wait_until(lock, next);
    }
    if (leaving_) return;
    const Time now = std::chrono::steady_clock::now();
    const bool all_of_them = std::exchange(again_, false) || stopping_;
    const bool ends = stopping_;
    while (!heap_.empty() && (all_of_them || heap_.front().look <= now)) {
      std::ranges::pop_heap(heap_, Later());
      some.push_back(std::move(heap_.back()));
      heap_.pop_back();
    }
    taken_ = some.size();
    lock.unlock();
    freezer_.forget();
    // First come, first served: of those that are due at the same look the one with the earliest time.
    std::ranges::stable_sort(some, {}, &Held::due);
    std::vector<std::uint32_t> places;
    std::erase_if(some, [&](Held& held) {
      bool over = false;
      if (ends) {
        held.owner->ended(true, now);
        ignore_gone(sys::answer_continue(held.call.listener->get(), held.call.id));
        over = true;
      } else {
        over = look(held, now);
      }
      DelayedCall& written = memory_[held.place];
      if (over) {
        written.id.store(0, std::memory_order_release);
        places.push_back(held.place);
      } else {
        written.due.store(held.due.time_since_epoch().count(), std::memory_order_relaxed);
      }
      return over;
    });
    lock.lock();
    free_.insert(free_.end(), places.begin(), places.end());
    for (Held& held : some) {
      heap_.push_back(std::move(held));
      std::ranges::push_heap(heap_, Later());
    }
    some.clear();
    taken_ = 0;
    if (ends && heap_.empty()) return;
  }
}

}  // namespace swapd::actuate
