// The seccomp observer: works without BPF and inside containers (docs/design.md, Observers).
//
// The calls of members come from the receivers' queues; blocks and wakeups from ThreadWatch; senders of signals, and
// the waker among several candidates, from perf tracepoints where they are allowed. Without them the thread that last
// accessed an awaited resource during the wait is taken for the waker.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "observe/observer.h"
#include "observe/seccomp/receiver.h"
#include "observe/seccomp/thread_watch.h"
#include "observe/seccomp/wake_records.h"
#include "observe/seccomp/waker_inference.h"
#include "sys/perf/perf.h"

namespace swapd::observe {

class SeccompObserver final : public Observer {
 public:
  struct Settings {
    ThreadWatch::Settings watch;
    bool tracepoints = true;
    std::vector<std::int32_t> trapped;  // calls that the filter notifies of
  };
  SeccompObserver(const sys::Procfs& procfs, Resolver& resolver, Settings settings, Hooks hooks);
  SeccompObserver(const SeccompObserver&) = delete;
  SeccompObserver& operator=(const SeccompObserver&) = delete;
  ~SeccompObserver() override;

  // One that was made before its parent was attached to has no filter.
  [[nodiscard]] bool inherits(pid_t tid) const override;
  [[nodiscard]] Status listen(sys::EventLoop& loop) override;
  [[nodiscard]] std::optional<Time> deadline() const override { return watch_.deadline(); }
  void drain(Time now, std::vector<Event>& out) override;
  void report_new(Time now, std::vector<Event>& out) override;
  void watch(const Member& member, bool sender) override;
  void unwatch(ThreadId thread) override;
  void look(ThreadId thread, Time now, std::vector<Event>& out) override;
  void be_patient(ThreadId thread, Duration patience) override;
  void resolve_again(ThreadId thread) override;
  void trace_wakes(ThreadId thread) override;
  void untrace_wakes(ThreadId thread) override;
  void answer(const WaitAnswer& answer, std::vector<Event>& out) override;
  void answer(const AccessAnswer& answer, std::vector<Event>& out) override;
  void forget(ThreadId thread) override;
  [[nodiscard]] Costs costs() const override { return watch_.costs(); }

  // ThreadWatch::hear().
  void hear(double part) { watch_.hear(part); }
  // A started receiver; its calls are read from the next drain() on.
  void add(std::shared_ptr<Receiver> receiver);
  void remove(const Receiver* receiver);
  // Features that the kernel or the privileges do not give, a line each; filled by the constructor.
  [[nodiscard]] const std::vector<std::string>& missing() const { return missing_; }

 private:
  struct Signalled {
    ThreadId target;
    Time time{};
  };

  void drain_calls(std::vector<Event>& out);
  void drain_newest_calls(Receiver& receiver, std::vector<Event>& out);
  void take(const RawCall& call, std::vector<Event>& out);
  void report(ThreadId thread, Time time, const Access& access, std::vector<Event>& out);
  void drain_signals(std::vector<Event>& out);
  void drain_wakes();
  void name_wakers(std::size_t first, std::vector<Event>& out);
  void report_sends(std::size_t first, std::vector<Event>& out);

  std::vector<std::string> missing_;  // before watch_, whose probing fills it
  const sys::Procfs& procfs_;
  Resolver& resolver_;
  Settings settings_;
  Hooks hooks_;
  ThreadWatch watch_;
  // Disabled events of a thread of our own. While there is one of a kind, neither to open the first other one nor to
  // close the last one has the engine wait until each CPU has gone through its scheduler (synchronize_rcu()).
  struct {
    std::unique_ptr<sys::SwitchWatch> switches;
    std::unique_ptr<sys::TraceWatch> blocks, wakes;
  } kept_;
  std::vector<std::shared_ptr<Receiver>> receivers_;
  std::unique_ptr<sys::TraceWatch> signals_;
  WakeRecords senders_;                                     // of important threads
  WakeRecords wakers_;                                      // of candidates: do they wake the requester
  std::unordered_map<ThreadId, Signalled> last_signalled_;  // by sender: whom it has signalled since its last wait
  WakerInference waker_inference_;
  Duration patience_{};                                // the last that a thread was given
  std::deque<std::pair<CallSite, Access>> looked_at_;  // in this drain; bounded
};

}  // namespace swapd::observe
