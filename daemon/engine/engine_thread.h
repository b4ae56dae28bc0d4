// The thread that the engine runs on: of a real-time class, asleep until an event, a command, or its next tick; and off
// the CPUs of the threads that it helps by nice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "engine/command_queue.h"
#include "engine/engine_affinity.h"
#include "engine/own_cpu.h"
#include "engine/pacer.h"
#include "kernel.h"
#include "sys/process/event_loop.h"

namespace swapd::daemon {

class EngineThread {
 public:
  struct Options {
    int priority = 93;  // SCHED_FIFO
    Duration tick = std::chrono::milliseconds(10);
    Duration idle_tick = std::chrono::milliseconds(100);
    decide::ObservationBudget::Config budget{};
  };
  EngineThread(const Kernel& kernel, Options options)
      : kernel_(kernel), options_(options), pacer_(options.tick, options.idle_tick), own_cpu_(options.budget) {}

  // Commands wake it from now on; before start().
  [[nodiscard]] Status listen();
  // Begins to run `body`, which goes on until stopping(). An error: the thread runs, in the ordinary class.
  [[nodiscard]] Status start(std::function<void()> body);
  // Ends the thread and waits for its end. False: it was not started, or has been stopped.
  bool stop();
  // Runs the command on the thread and waits for it. False if the thread has ended.
  bool call(std::function<void()> command);

  // --- any thread ---
  void wake() { commands_.wake(); }
  [[nodiscard]] int wake_fd() const { return commands_.fd(); }

  // --- on the thread ---
  [[nodiscard]] sys::EventLoop& loop() { return loop_; }
  [[nodiscard]] bool stopping() const { return stopping_; }
  // Sleeps until something happens, or until `deadline` (Time::max(): none) or the next tick; then dispatches what has
  // happened. any_members: there are ticks. idle: a tick would find nothing to do. Returns the time of the dispatch.
  Time wait(Time deadline, bool any_members, bool idle);
  // A turn begins: how long to let records gather first, because there are many, or until it is paid for.
  [[nodiscard]] Duration begin_turn(Time now) { return std::max(pacer_.delay(), own_cpu_.wait(now)); }
  // For so long, or until a command comes, whose caller waits.
  void rest(Duration time) const { commands_.rest(time); }
  // The commands that have come; each is to be called.
  [[nodiscard]] std::vector<CommandQueue::Command> take_commands() { return commands_.take(); }
  // No command is taken any more. Calls those that are left.
  void close() { commands_.close(); }
  void tick_soon(Time now) { pacer_.tick_soon(now); }
  // Whether a tick is due; end_tick() follows it.
  [[nodiscard]] bool begin_tick(Time now) { return pacer_.begin_tick(now); }
  void end_tick(Time now);
  // See OwnCpu::measure(): the patience with which swapd keeps to its budget, if it has changed.
  [[nodiscard]] std::optional<Duration> keep_to_budget(Time now, const OwnCpu::Help& help, Duration apart);
  [[nodiscard]] BudgetUse budget() const { return own_cpu_.budget(); }
  void set_many(bool many) { own_cpu_.set_many(many); }
  [[nodiscard]] double heard() const { return own_cpu_.heard(); }
  // False: keep_off() would do nothing.
  [[nodiscard]] bool may_move(Time now) const { return affinity_ && !affinity_->rests(now); }
  // No CPU but these is left to it.
  [[nodiscard]] bool has_no_other(std::span<const int> busy) const {
    return affinity_ && affinity_->has_no_other(busy);
  }
  // busy: the CPUs of threads that matter now, the favoured ones first.
  void keep_off(std::span<const int> busy, Time now);

 private:
  const Kernel& kernel_;
  Options options_;
  sys::EventLoop loop_;  // before all that stand in it
  CommandQueue commands_;
  sys::EventLoop::Registration hears_commands_;
  Pacer pacer_;
  OwnCpu own_cpu_;
  std::optional<EngineAffinity> affinity_;  // none: the own affinity cannot be read
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace swapd::daemon
