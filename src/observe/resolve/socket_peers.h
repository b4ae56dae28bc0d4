// From a socket to the sockets that can end a wait on it: its peer, or those that may turn out to be (docs/design.md,
// Observers).
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/lately_used.h"
#include "base/look_credit.h"
#include "base/time.h"
#include "sys/netlink/sock_diag.h"
#include "sys/process/self_process.h"

namespace swapd::observe {

// The endpoints that a thread blocked on a socket awaits. The socket itself where no other is known: a listening one, a
// datagram socket without a connected peer, the end of a connection that leaves the machine.
struct Peers {
  std::vector<std::uint64_t> inodes;
  bool stable = false;  // for the lifetime of the socket; else it may have changed at the next wait
};

// `all`: the sockets of the same network namespace; for a connected stream only needed until it is accepted.
[[nodiscard]] Peers unix_peers(const sys::UnixSocket& own, const std::vector<sys::UnixSocket>& all);
[[nodiscard]] Peers inet_peers(const sys::InetSocket& own, const std::vector<sys::InetSocket>& all);
// Both ends of each TCP connection of this machine that is accepted: the peer of such a socket is its peer for life.
struct Connected {
  std::uint64_t inode = 0, peer = 0;
};
[[nodiscard]] std::vector<Connected> connected_pairs(const std::vector<sys::InetSocket>& all);
// The socket listening (TCP) or bound (UDP) for connections to this address; 0: none here.
[[nodiscard]] std::uint64_t inet_listener(const sys::InetAddress& address, int protocol,
                                          const std::vector<sys::InetSocket>& all);

// The cache between the worker, which asks the kernel, and the engine, which must not. Keyed by inode: a socket's inode
// is its identity for as long as it is open, and numbers come back only after 2^32 others. Sockets that are gone are
// not told of: what was not asked for in five to ten minutes is forgotten.
//
// The kernel finds an internet socket by its inode only in a dump of them all, of some milliseconds on a machine with
// much memory. So a dump answers for each connection in it, and what may have changed since is asked for again only
// after a time of ten dumps: a client of fifty connections costs one. A server of short connections has new ones at
// each look: dumps have a credit (LookCredit), and a question without it is told when to ask again.
class SocketPeers {
 public:
  // cpu_time: of the calling thread, which is what dumps are paid for with.
  SocketPeers(sys::SockDiag& diag, const Clock& clock, std::function<Duration()> cpu_time = sys::own_cpu_time)
      : diag_(diag), clock_(clock), cpu_time_(std::move(cpu_time)) {}

  struct Cached {
    Peers peers;
    bool fresh = false;  // false: may have changed; ask the worker too
  };
  // [engine] Never waits: while the worker writes, nothing is known.
  [[nodiscard]] std::optional<Cached> cached(std::uint64_t inode);
  struct Looked {
    std::optional<Peers> peers;  // empty: not a socket of a family we know, or not known yet
    Time again = Time::max();    // when to ask again what could not be asked now; max: there is no need
  };
  // [worker] Asks the kernel unless the cache is certain.
  [[nodiscard]] Looked look(pid_t pid, std::uint64_t inode);
  void drop(std::uint64_t inode);
  [[nodiscard]] std::size_t size();

 private:
  static constexpr std::size_t most = 16384;
  static constexpr Duration kept_for = std::chrono::minutes(5);
  static constexpr Duration fresh_for = std::chrono::milliseconds(50);
  struct Entry {
    std::optional<Peers> peers;  // empty: of no family we know
    Time time;
    Duration cost{};  // of the dumps that were needed
  };
  [[nodiscard]] std::optional<Peers> ask_unix(pid_t pid, std::uint64_t inode);
  [[nodiscard]] std::optional<Peers> ask_inet(pid_t pid, std::uint64_t inode, int protocol);
  [[nodiscard]] std::optional<Peers> keep(std::uint64_t inode, std::optional<Peers> peers, Duration cost);

  sys::SockDiag& diag_;
  const Clock& clock_;
  std::function<Duration()> cpu_time_;
  std::mutex mutex_;
  LatelyUsed<std::uint64_t, Entry> entries_{kept_for, most};
  LookCredit dumps_{50};  // [worker]
};

}  // namespace swapd::observe
