// The listeners of the filters that swapd has installed: whose launch made each, which processes are under it, and that
// its receiver is where its callers are. Engine thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "observe/seccomp/receiver.h"

namespace swapd::daemon {

class ListenerTable {
 public:
  using Receiver = observe::ReceiverHandle;

  // A receiver that has been started. launch: the process whose launch made its listener.
  void add(std::shared_ptr<Receiver> receiver, pid_t launch);
  // Its last target has ended. Returns how many records it has lost.
  std::uint64_t remove(const Receiver* receiver);
  // Its filter traps I/O calls, too. Nothing for a receiver that is not here.
  void traps_io(const Receiver* receiver);

  // The process is under the receiver's filter; its child is under the same; it is there no more.
  void bind(pid_t tgid, const Receiver* receiver) { by_process_[tgid] = receiver; }
  void inherit(pid_t child, pid_t parent);
  void unbind(pid_t tgid) { by_process_.erase(tgid); }

  [[nodiscard]] bool contains(pid_t tgid) const { return by_process_.contains(tgid); }
  [[nodiscard]] bool has_io(pid_t tgid) const;
  [[nodiscard]] bool any_io() const;
  // Null: that launch's listener is not here.
  [[nodiscard]] const Receiver* of_launch(pid_t launch) const;
  [[nodiscard]] std::size_t size() const { return listeners_.size(); }

  // Whether receivers wake the engine for each call, for those that come later too. True: that has changed.
  bool set_urgent(bool urgent);

  // A caller in a real-time class must not wait for a receiver of the ordinary class, behind all others that are
  // real-time on its CPU. So each receiver is pinned to the CPU of one such caller of its, the last one if it can be,
  // at real-time `priority`; without one it is ordinary again. Call at each tick: where a caller stays, or makes no
  // calls, it is not looked for.
  struct Caller {
    pid_t tid = 0;
    pid_t tgid = 0;
  };
  using CpuOf = std::function<std::optional<int>(pid_t tid)>;  // empty: it is gone
  void follow(std::span<const Caller> realtime, int priority, const CpuOf& cpu_of);

  struct Totals {
    std::uint64_t received = 0, lost = 0;  // notifications; those of listeners that have ended included
    Duration cpu{};                        // of the receivers that run
  };
  [[nodiscard]] Totals totals() const;

 private:
  static constexpr unsigned max_pause = 2;  // ticks without a look at where a caller runs
  struct Listener {
    std::shared_ptr<Receiver> receiver;
    pid_t launch = 0;
    bool io = false;
    // The caller that the receiver follows.
    int cpu = -1;
    pid_t caller = 0;
    std::uint64_t received = 0;  // at the last look
    unsigned settled = 0;        // looks on end that found the caller where it was …
    unsigned pause = 0;          // … and ticks before the next one
  };
  [[nodiscard]] std::vector<Listener>::const_iterator find(const Receiver* receiver) const;
  static void follow(Listener& listener, pid_t caller, int priority, const CpuOf& cpu_of);

  std::vector<Listener> listeners_;
  std::unordered_map<pid_t, const Receiver*> by_process_;  // by tgid
  bool urgent_ = false;
  Totals ended_;
};

}  // namespace swapd::daemon
