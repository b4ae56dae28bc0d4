// One receiver thread a listener: receive, id to shared memory, answer CONTINUE, push to a ring (docs/design.md,
// Threads).
//
// Answer first, think later: nothing stands between the receipt and the answer but a time stamp and one store. The
// thread is of the ordinary class, nice -20; while a member runs in a real-time class the engine has it follow that
// member (follow()).
//
// Since 6.11 it blocks in RECV alone: when the last target has ended, RECV comes back with ENOENT and one poll tells.
// Before 6.11 RECV would block for ever then, so each RECV has a poll before it (measured: 0.5 µs of 6.5 µs a call).
// No other thread may poll the listener for POLLIN, because each notification would wake that thread (measured: 6.5 µs
// become 1 ms). Watching it for POLLHUP alone costs nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/guard_memory.h"
#include "base/result.h"
#include "base/thread_id.h"
#include "base/time.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::observe {

// One answered notification, as the ring carries it.
struct RawCall {
  Time time;
  pid_t tid = 0;
  std::int32_t nr = -1;
  std::array<std::uint64_t, 6> args{};
};

// May hold a call back. The receiver's thread.
class CallFilter {
 public:
  CallFilter() = default;
  CallFilter(const CallFilter&) = delete;
  CallFilter& operator=(const CallFilter&) = delete;
  virtual ~CallFilter() = default;
  // True: the filter will see that the call is answered later, and has written it down for the guard already.
  [[nodiscard]] virtual bool should_delay(const sys::Notification& notification) = 0;
};

// The engine's view of a receiver whose thread runs.
class ReceiverHandle {
 public:
  ReceiverHandle() = default;
  ReceiverHandle(const ReceiverHandle&) = delete;
  ReceiverHandle& operator=(const ReceiverHandle&) = delete;
  virtual ~ReceiverHandle() = default;

  [[nodiscard]] virtual std::uint64_t received() const = 0;  // notifications since start
  [[nodiscard]] virtual pid_t last_caller() const = 0;       // tid; 0: none yet
  [[nodiscard]] virtual std::uint64_t lost() const = 0;      // records that found the ring full
  [[nodiscard]] virtual Duration cpu_time() const = 0;       // of its thread
  // Whether a push shall call Callbacks::wake at once (a member is being waited for); else the consumer polls. Drain
  // after turning it on: for what the ring holds by then no wake comes.
  virtual void set_urgent(bool urgent) = 0;
  // [engine] Real-time (FIFO) at `priority`, pinned to `cpu`; cpu -1: ordinary, nice -20, on the CPUs that it began
  // with.
  [[nodiscard]] virtual Status follow(int cpu, int priority) = 0;
};

class Receiver final : public ReceiverHandle {
 public:
  struct Callbacks {
    // From the receiver's thread, after the answer, only when the ring was empty and `urgent` asks for it.
    std::function<void()> wake;
    // From the receiver's thread, once: the listener has no more targets (POLLHUP) or failed. The last act of the
    // thread.
    std::function<void()> finished;
  };
  // poll_first: as before 6.11.
  Receiver(Fd listener, ListenerSlot* slot, Callbacks callbacks, bool poll_first = !sys::receive_ends_with_targets());
  ~Receiver() override;  // stops the thread; the listener is closed

  [[nodiscard]] Status start();
  void stop();  // ends the thread; the listener stays open
  // Moves up to `most` records out of the ring. One consumer. Returns how many.
  std::size_t drain(RawCall* out, std::size_t most);
  [[nodiscard]] std::uint64_t received() const override;
  [[nodiscard]] pid_t last_caller() const override;
  [[nodiscard]] std::uint64_t lost() const override;
  [[nodiscard]] Duration cpu_time() const override;
  [[nodiscard]] pid_t tid() const;
  [[nodiscard]] int listener() const;
  void set_urgent(bool urgent) override;
  // No consumer drains: what it receives is answered and counted only.
  void keep_to_itself();
  // Asked about every call. Before start().
  void set_filter(std::unique_ptr<CallFilter> filter);
  [[nodiscard]] Status follow(int cpu, int priority) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::observe
