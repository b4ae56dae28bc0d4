// From a snapshot to what the bus shows: threads, wait trees, the graph. What the engine does not watch is looked up
// here, on the control thread, at the moment of asking.
#pragma once

#include <chrono>
#include <optional>
#include <unordered_set>

#include "bus/backend.h"
#include "engine/snapshot.h"
#include "observe/resolve/resolver.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/freezer.h"

namespace swapd::daemon {

class Views {
 public:
  Views(Snapshot snapshot, const sys::Procfs& procfs, observe::Resolver& resolver);

  // depth 0: the resources alone, without their providers (`ps`).
  [[nodiscard]] bus::ThreadView thread(const SnapshotThread& thread, int depth);
  [[nodiscard]] std::vector<bus::ThreadView> threads();  // at depth 0, by process and thread
  [[nodiscard]] bus::GraphView graph();
  [[nodiscard]] bus::WorldView world();
  // The threads of that id: the thread itself, or those of that process, the blocked ones first.
  [[nodiscard]] std::vector<const SnapshotThread*> select(pid_t pid) const;
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }

 private:
  struct Looked {
    ThreadState state = ThreadState::blocked;
    std::int32_t call = -1;
    std::vector<Resource> awaited;
    std::optional<std::chrono::duration<double, std::milli>> since{};  // none: the thread is not watched
    std::int64_t share = 0, debt = 0;                                  // delayed (Shaper::Delay)
  };
  [[nodiscard]] Looked look(const SnapshotThread& thread);
  [[nodiscard]] std::vector<bus::WaitNode> waits(ThreadId waiter, const Looked& looked, int depth,
                                                 std::vector<ThreadId>& above);
  [[nodiscard]] Vector<model::ProviderView> providers(ThreadId waiter, const Resource& resource, int depth);
  [[nodiscard]] bool favoured(ThreadId waiter, ThreadId provider) const;
  void keep_jobs();
  [[nodiscard]] std::optional<bus::ThreadView::Job> job_of(ThreadId thread) const;
  [[nodiscard]] std::string comm(pid_t tid) const;
  // Stopped or frozen; empty: neither, or it runs. state: as /proc says it.
  [[nodiscard]] std::optional<ThreadState> halted(pid_t tid, char state);
  // The first thread of the donation's path that is.
  [[nodiscard]] std::optional<ThreadState> halted(const Vector<ThreadId>& path);
  // A thread would provide what is awaited, if it were not for that.
  [[nodiscard]] std::optional<ThreadState> what_holds_up(ThreadId waiter, const Looked& looked);
  // It is not managed, and passes messages on.
  [[nodiscard]] bool relays(ThreadId stranger) const;
  [[nodiscard]] const decide::Donation* donation_of(ThreadId requester) const;

  Snapshot snapshot_;
  const sys::Procfs& procfs_;
  observe::Resolver& resolver_;
  std::vector<pid_t> members_;
  sys::Freezer freezer_;
  int shown_ = 0;  // providers, at any depth
};

[[nodiscard]] std::string call_text(std::int32_t nr);

}  // namespace swapd::daemon
