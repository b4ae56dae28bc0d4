// From a snapshot to what the bus shows: threads, wait trees, the graph. What the engine does not watch is looked up
// here, on the control thread, at the moment of asking.
#pragma once

#include <unordered_set>

#include "bus/backend.h"
#include "observe/resolver.h"
#include "snapshot.h"
#include "sys/procfs.h"

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
    std::string state;  // the contract's words
    std::int32_t call = -1;
    std::vector<Resource> awaited;
    std::chrono::duration<double, std::milli> since{0};
  };
  [[nodiscard]] Looked look(const SnapshotThread& thread);
  [[nodiscard]] std::vector<bus::WaitNode> waits(ThreadId waiter, const Looked& looked, int depth,
                                                 std::vector<ThreadId>& above);
  [[nodiscard]] std::vector<model::ProviderView> providers(ThreadId waiter, const Resource& resource, int depth);
  [[nodiscard]] bool favoured(ThreadId waiter, ThreadId provider) const;
  [[nodiscard]] std::string comm(pid_t tid) const;
  [[nodiscard]] const decide::Donation* donation_of(ThreadId requester) const;

  Snapshot snapshot_;
  const sys::Procfs& procfs_;
  observe::Resolver& resolver_;
  std::vector<pid_t> members_;
  int shown_ = 0;  // providers, at any depth
};

[[nodiscard]] std::string call_text(std::int32_t nr);
[[nodiscard]] std::string_view name(Evidence evidence);

}  // namespace swapd::daemon
