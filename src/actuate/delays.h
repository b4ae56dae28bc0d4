// Calls that are held at their entry until their time ([TAP08 §2.4]: the process is put to sleep; docs/design.md,
// Shaping). One thread answers them.
//
// A held call is a seccomp notification that has been received and is not answered. With WAIT_KILLABLE_RECV only a
// fatal signal ends it, so this thread has to see to everything else: it looks at each call again after each slice. A
// call goes on early where a signal waits for its thread, where its limits have changed, or where it is over anyway. A
// call that has gone on early has taken its tokens all the same.
//
// Each is written down in the guard's memory first: if swapd ends, the guard serves it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/guard_memory.h"
#include "base/time.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/freezer.h"

namespace swapd::actuate {

// A held call, as its owner knows it. Called by the delaying thread alone.
class Delayed {
 public:
  Delayed() = default;
  Delayed(const Delayed&) = delete;
  Delayed& operator=(const Delayed&) = delete;
  virtual ~Delayed() = default;
  // When it may go on; asked after each slice.
  [[nodiscard]] virtual Time due(Time now) = 0;
  // It is about to go on early, for these signals.
  virtual void disturbed(std::uint64_t signals) = 0;
  // It went on, or (made == false) it was given up: its thread has been killed.
  virtual void ended(bool made, Time now) = 0;
};

class Delays {
 public:
  // memory: where the guard finds them. slice: a look at least so often.
  Delays(const sys::Procfs& procfs, std::span<DelayedCall> memory, Duration slice);
  ~Delays();  // everything goes on
  Delays(const Delays&) = delete;
  Delays& operator=(const Delays&) = delete;

  struct Call {
    std::shared_ptr<const Fd> listener;
    std::uint32_t slot = 0;  // the listener's, in the guard's memory
    std::uint64_t id = 0;    // of the notification
    pid_t tid = 0;
    bool by_turns = false;  // its time will be put off, so that it is looked at though it is near
    // These have let its last calls go on early: this one they do only after so long. Stops, what ends a program, and
    // the C library's own always do at once.
    std::uint64_t repeated = 0;
    Duration patience{};
  };
  // False: there is no room; it is the caller's to answer. Any thread.
  [[nodiscard]] bool hold(const Call& call, Time due, std::shared_ptr<Delayed> owner);
  // Something has changed that may let calls go on: all are looked at now. Any thread.
  void look_again();
  [[nodiscard]] std::size_t held() const;
  // From now on nothing is held, and what is goes on.
  void stop() { end(true); }
  // The same, but what is held is left to the guard.
  void leave() { end(false); }

 private:
  struct Held {
    Call call;
    Time due;
    Time since;
    Time look;  // the next one
    std::uint32_t place = 0;
    pid_t tracer = 0;  // that it had when it was held
    std::shared_ptr<Delayed> owner;
  };
  struct Later {
    bool operator()(const Held& a, const Held& b) const { return a.look > b.look; }
  };

  void end(bool release);
  void run();
  [[nodiscard]] bool look(Held& held, Time now);
  [[nodiscard]] bool goes_early(const Held& held, Time now);

  const sys::Procfs& procfs_;
  sys::Freezer freezer_;  // the delaying thread's
  std::span<DelayedCall> memory_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Held> heap_;  // by `look`
  std::vector<std::uint32_t> free_;
  const Duration slice_;
  std::size_t taken_ = 0;  // out of the heap, being looked at
  bool again_ = false;
  bool stopping_ = false;
  bool leaving_ = false;  // to the guard
  std::thread thread_;
};

}  // namespace swapd::actuate
