// Threads that could provide a resource now, found by looking (docs/design.md, Model, cold start and lock holders).
//
// The managed processes are looked at first; only if none of them holds the other end, all others, which are named in
// `why` and never boosted. Slow: thousands of descriptors at worst. One caller at a time.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/lately_used.h"
#include "observe/resolve/descriptor.h"
#include "observe/resolve/fd_cache.h"
#include "observe/resolve/lock_holders.h"
#include "observe/resolve/process_ids.h"
#include "observe/resolve/resolver.h"
#include "observe/resolve/socket_peers.h"

namespace swapd::observe {

class Holders {
 public:
  Holders(const sys::Procfs& procfs, const Descriptors& descriptors, const ProcessIds& ids, SocketPeers& peers,
          const Clock& clock);

  struct Waiter {
    pid_t tid = 0;
    pid_t tgid = 0;
  };
  // Empty: of this kind nothing can be found by looking.
  // asked: what was read since then is new enough.
  [[nodiscard]] std::optional<Found> find(const Waiter& waiter, const Resource& resource,
                                          std::span<const pid_t> members, Time asked);

  // The running and queued threads of a process first, then its main thread, then others; three at most. As of `asked`,
  // or of a moment ago where there are many.
  [[nodiscard]] std::vector<ThreadId> threads_of(pid_t pid, pid_t but, Time asked);

 private:
  using Pids = std::vector<pid_t>;
  [[nodiscard]] Pids among(const Resource& resource, std::span<const pid_t> pids, Duration max_age);
  [[nodiscard]] Pids among_strangers_anew(const Resource& resource, const Pids& rest, Duration max_age);
  [[nodiscard]] Pids among_servers(const Resource& resource, std::span<const pid_t> members, Duration max_age);
  void guess_behind(const Waiter& waiter, const Pids& others, std::span<const pid_t> members, Time asked, Found& out);
  void remember_servers(const Pids& pids);
  [[nodiscard]] bool holds(const Resource& resource, pid_t pid, Duration max_age);
  [[nodiscard]] bool has_eventfd(pid_t pid, std::uint64_t id, Duration max_age);
  [[nodiscard]] const Pids& all_processes(Time asked);
  [[nodiscard]] bool only_own_endpoint(const Waiter& waiter, const Resource& resource);
  [[nodiscard]] std::optional<Pids> named(const Waiter& waiter, const Resource& resource);
  [[nodiscard]] std::optional<Found> siblings(const Waiter& waiter, const Resource& signal,
                                              std::span<const pid_t> members);
  [[nodiscard]] Found in_kernel(const Waiter& waiter, const Resource& resource, std::span<const pid_t> members,
                                Time asked);
  [[nodiscard]] bool serves(pid_t pid, std::uint64_t dev, Duration max_age);
  [[nodiscard]] Pids sharing(const Resource& futex, std::span<const pid_t> members) const;
  [[nodiscard]] Found with_threads(const Waiter& waiter, const Resource& resource, Evidence evidence,
                                   const Pids& managed, const Pids& others, Time asked);

  const sys::Procfs& procfs_;
  const Clock& clock_;
  const Descriptors& descriptors_;
  const ProcessIds& ids_;
  SocketPeers& peers_;
  FdCache fds_;
  LockHolders locks_;
  struct Eventfds {  // of a process: they have one inode, and the number that tells them apart takes long to read
    Time time;
    std::unordered_map<std::uint64_t, int> fds;  // by number
  };
  static constexpr std::size_t max_remembered_processes = 1024;
  static constexpr Duration remembered_for = std::chrono::seconds(5);  // more than any age that is asked for
  LatelyUsed<pid_t, Eventfds> eventfds_{remembered_for, max_remembered_processes};
  struct Threads {
    Time time;
    Duration believed{};  // of a process of many threads, so that two hundred questions do not read them all each time
    std::vector<ThreadId> best;
  };
  LatelyUsed<pid_t, Threads> threads_{remembered_for, max_remembered_processes};
  Pids processes_;
  Time processes_read_{};
  Time read_anew_from_{};  // strangers' tables may be, from then on
  Pids servers_;           // not managed, and held other ends of sockets lately: the last one first
  std::uint64_t own_ipc_namespace_ = 0;
};

}  // namespace swapd::observe
