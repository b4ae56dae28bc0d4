// The inside of the resolver: resolver.cpp has what is waited for, resolver_access.cpp what a call provides.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/resolve/connect_calls.h"
#include "observe/resolve/descriptor.h"
#include "observe/resolve/holders.h"
#include "observe/resolve/kernel_waits.h"
#include "observe/resolve/pollers.h"
#include "observe/resolve/process_ids.h"
#include "observe/resolve/resolver.h"
#include "observe/resolve/socket_peers.h"
#include "observe/resolve/syscall_table.h"
#include "observe/resolve/wait_set_cache.h"
#include "sys/bpf/io_uring_requests.h"

namespace swapd::observe {

inline constexpr std::size_t max_awaited = 256;  // of one wait
inline constexpr Resource unknown_resource{};
inline constexpr Duration short_kernel_wait = std::chrono::milliseconds(1);
inline constexpr Duration long_kernel_wait = std::chrono::milliseconds(3);

// Adds it once.
inline void add(std::vector<Resource>& to, const Resource& resource) {
  if (to.size() < max_awaited && std::find(to.begin(), to.end(), resource) == to.end()) to.push_back(resource);
}

inline int fd_of(const CallSite& site, unsigned arg) { return static_cast<int>(site.args.at(arg)); }

struct Resolver::Impl {
  Impl(const sys::Procfs& procfs_in, sys::SockDiag& diag_in, const Clock* clock)
      : procfs(procfs_in),
        diag(diag_in),
        descriptors(procfs),
        ids(procfs),
        peers(diag, clock != nullptr ? *clock : steady),
        holders(procfs, descriptors, ids, peers, clock != nullptr ? *clock : steady),
        time(clock != nullptr ? *clock : steady) {}

  // Whether the worker asks, which may read memory, fdinfo and netlink, or the engine, which may not.
  enum class By : std::uint8_t { engine, worker };

  Wait resolve(const CallSite& asked, By by);
  void wait_on(Wait& wait, const CallSite& site, const Descriptor& descriptor, Direction direction, By by);
  void wait_on_fd(Wait& wait, const CallSite& site, unsigned arg, Direction direction, By by);
  void wait_on_socket(Wait& wait, const CallSite& site, std::uint64_t inode, By by);
  void wait_on_set(Wait& wait, const CallSite& site, CallKind kind);
  void believe_set(Wait& wait, const CallSite& site);
  void look_at_set(Wait& wait, const CallSite& asked, const CallSite& site, CallKind kind);
  [[nodiscard]] bool stands_in(const CallSite& site) const;
  void open_rings();
  void wait_on_ring(Wait& wait, const CallSite& site);
  void wait_on_request(Wait& wait, const CallSite& site, const sys::RingRequest& request);
  std::optional<Descriptor> file_of(const CallSite& site, const sys::RingRequest& request);
  void wait_on_address(Wait& wait, const CallSite& site, const CallEntry& entry, By by);
  void wait_for_child(Wait& wait, const CallSite& site, By by);
  void wait_for_signal(Wait& wait, const CallSite& site);
  void wait_on_futex(Wait& wait, const CallSite& site, By by);
  void wait_on_futexes(Wait& wait, const CallSite& site);
  void wait_on_file(Wait& wait, const CallSite& site, std::uint64_t dev, std::uint64_t ino, By by);
  void wait_in_call(Wait& wait, const CallSite& site, By by);
  void wait_for(Wait& wait, const Resource& resource);
  bool add_known(Wait& wait, const Resource& resource);
  [[nodiscard]] bool knows_kernel_waits(bool of_fuse);
  [[nodiscard]] Stall stall(pid_t tid) const;
  [[nodiscard]] std::optional<std::uint64_t> fuse_mount(const CallSite& site, const FileArgs& args) const;
  void wait_on_lock(Wait& wait, const CallSite& site, CallKind kind, By by);
  void wait_between_tries(Wait& wait, const CallSite& site, By by);

  Access access(const CallSite& site, By by);
  void transfer_access(Access& access, const CallSite& site, const CallEntry& entry, By by);
  void signal_access(Access& access, const CallSite& site, By by);
  void address_access(Access& access, const CallSite& site, const Address& address, bool connects, By by);
  std::optional<Resource> end_access(Access& access, const CallSite& site, unsigned arg, Direction direction);

  std::optional<Resource> sysv_resource(const CallSite& site, CallKind kind) const;
  std::optional<FileId> file_in(const CallSite& site, unsigned arg) const;

  // The last full answer of each thread: programs wait in the same place again and again.
  struct Remembered {
    CallSite site;
    std::vector<Resource> awaited;
  };
  void remember(const CallSite& site, const Wait& wait);
  void guess(const CallSite& site, Wait& wait);
  // A call that a stop or a freeze interrupted shows as restart_syscall with its own arguments: the one remembered.
  [[nodiscard]] CallSite restarted(const CallSite& site);

  SteadyClock steady;
  const sys::Procfs& procfs;
  sys::SockDiag& diag;
  Descriptors descriptors;
  ProcessIds ids;
  SocketPeers peers;
  Holders holders;
  const Clock& time;
  Pollers pollers;
  WaitSetCache sets;
  std::vector<sys::LockLine> locks;  // [worker] of the machine, as of locks_read
  Time locks_read{};
  std::optional<Result<std::unique_ptr<sys::RingRequests>>> rings;  // [worker] from the first wait in one on
  std::mutex slow_calls;                                            // holders, diag
  // A read of maps tells which object a futex without the private flag lies in. [engine] known_futex() never waits.
  std::optional<Resource> known_futex(pid_t tgid, std::uint64_t address);
  std::optional<Resource> look_up_futex(pid_t tgid, std::uint64_t address);

  std::mutex mutex;  // remembered, futexes, kernel_waits, missing
  std::vector<MissingPiece> missing;
  KernelWaits kernel_waits;
  std::map<std::pair<pid_t, std::uint64_t>, Resource> futexes;
  std::unordered_map<pid_t, Remembered> remembered;
};

}  // namespace swapd::observe
