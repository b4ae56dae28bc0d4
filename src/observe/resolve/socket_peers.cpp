#include "observe/resolve/socket_peers.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

namespace swapd::observe {

namespace {

// Among too many possible peers none stands out; the model keeps no more providers than this either.
constexpr std::size_t max_candidates = 32;
// Peers that may have changed are believed for so many times their cost, so that asking takes a tenth of a CPU at most.
constexpr int believed_for_costs = 10;

void add(Peers& peers, std::uint64_t inode) {
  if (inode != 0 && peers.inodes.size() < max_candidates) peers.inodes.push_back(inode);
}

bool mapped(const sys::InetAddress& address) {
  return std::all_of(address.bytes.begin(), address.bytes.begin() + 10, [](auto b) { return b == 0; }) &&
         address.bytes[10] == 0xff && address.bytes[11] == 0xff;
}

// Whether what is sent to the address arrives at this socket, as far as its local side tells.
bool takes(const sys::InetSocket& socket, const sys::InetAddress& address) {
  if (socket.local.port != address.port) return false;
  if (socket.local.bytes == address.bytes) return true;
  if (!socket.local.any()) return false;
  return socket.v6 ? !(socket.v6_only && mapped(address)) : mapped(address);
}

Peers udp_peers(const sys::InetSocket& own, const std::vector<sys::InetSocket>& all) {
  Peers out;
  if (own.remote.port != 0) {
    for (const auto& other : all) {
      if (other.local == own.remote && other.remote == own.local) add(out, other.inode);
    }
    if (!out.inodes.empty()) return out;
    for (const auto& other : all) {
      if (other.remote.port == 0 && takes(other, own.remote)) add(out, other.inode);
    }
    return out;
  }
  for (const auto& other : all) {
    if (other.inode != own.inode && other.remote.port != 0 && takes(own, other.remote)) add(out, other.inode);
  }
  if (!out.inodes.empty()) return out;
  // Neither side is connected: anybody may send, except those who have tied themselves to somebody else.
  for (const auto& other : all) {
    if (other.inode != own.inode && other.remote.port == 0) add(out, other.inode);
  }
  return out;
}

}  // namespace

Peers unix_peers(const sys::UnixSocket& own, const std::vector<sys::UnixSocket>& all) {
  Peers out;
  if (own.listening) return {{own.inode}, true};
  if (own.peer != 0) return {{own.peer}, own.type != SOCK_DGRAM};
  if (own.type != SOCK_DGRAM) {
    // Connected, sent, and not accepted yet: the peer has no inode, but stands in the listening socket's queue.
    for (const auto& other : all) {
      if (std::find(other.pending.begin(), other.pending.end(), own.inode) != other.pending.end())
        add(out, other.inode);
    }
  } else {
    for (const auto& other : all) {
      if (other.peer == own.inode && other.inode != own.inode) add(out, other.inode);
    }
    if (out.inodes.empty()) {  // unconnected on both sides: those that can be sent to, and so take part in exchanges
      for (const auto& other : all) {
        if (other.type == SOCK_DGRAM && other.peer == 0 && !other.name.empty() && other.inode != own.inode)
          add(out, other.inode);
      }
    }
  }
  if (out.inodes.empty()) out.inodes.push_back(own.inode);
  return out;
}

std::uint64_t inet_listener(const sys::InetAddress& address, int protocol, const std::vector<sys::InetSocket>& all) {
  std::uint64_t wildcard = 0;
  for (const auto& other : all) {
    const bool open = protocol == IPPROTO_TCP ? other.listening : other.remote.port == 0;
    if (!open || other.inode == 0 || !takes(other, address)) continue;
    if (!other.local.any()) return other.inode;
    if (wildcard == 0) wildcard = other.inode;
  }
  return wildcard;
}

Peers inet_peers(const sys::InetSocket& own, const std::vector<sys::InetSocket>& all) {
  Peers out;
  if (own.protocol == IPPROTO_UDP) {
    out = udp_peers(own, all);
  } else if (own.listening) {
    return {{own.inode}, true};
  } else {
    for (const auto& other : all) {
      if (other.inode != 0 && other.local == own.remote && other.remote == own.local) return {{other.inode}, true};
    }
    add(out, inet_listener(own.remote, own.protocol, all));  // nobody has accepted it yet
  }
  if (out.inodes.empty()) out.inodes.push_back(own.inode);
  return out;
}

std::vector<Connected> connected_pairs(const std::vector<sys::InetSocket>& all) {
  using Ends = std::pair<sys::InetAddress, sys::InetAddress>;
  std::vector<std::pair<Ends, std::uint64_t>> sorted;
  for (const auto& one : all)
    if (one.protocol == IPPROTO_TCP && one.inode != 0 && !one.listening)
      sorted.emplace_back(Ends{one.local, one.remote}, one.inode);
  std::ranges::sort(sorted);
  std::vector<Connected> out;
  for (const auto& [ends, inode] : sorted) {
    const Ends mirrored{ends.second, ends.first};
    const auto other = std::ranges::lower_bound(sorted, mirrored, {}, &std::pair<Ends, std::uint64_t>::first);
    if (other != sorted.end() && other->first == mirrored) out.push_back({inode, other->second});
  }
  return out;
}

std::optional<SocketPeers::Cached> SocketPeers::cached(std::uint64_t inode) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return std::nullopt;
  const Entry* entry = entries_.find(inode);
  if (entry == nullptr || !entry->peers) return std::nullopt;
  return Cached{*entry->peers, entry->peers->stable || clock_.now() - entry->time < fresh_for};
}

SocketPeers::Looked SocketPeers::look(pid_t pid, std::uint64_t inode) {
  const Time begun = clock_.now();
  const Duration before = cpu_time_();
  const bool may_dump = begun >= dumps_.next();
  {
    const std::lock_guard lock(mutex_);
    if (const Entry* entry = entries_.find(inode)) {
      const Duration believed = std::min<Duration>(believed_for_costs * entry->cost, fresh_for);
      if ((entry->peers && entry->peers->stable) || begun - entry->time < believed) return {entry->peers};
      if (!entry->peers && !may_dump) return {};
    }
  }
  if (auto peers = ask_unix(pid, inode)) return {keep(inode, std::move(peers), cpu_time_() - before)};
  if (!may_dump) {
    const auto known = cached(inode);
    return {known ? std::optional(known->peers) : std::nullopt, dumps_.next()};
  }
  std::optional<Peers> found;
  for (const int protocol : {IPPROTO_TCP, IPPROTO_UDP})
    if (!found) found = ask_inet(pid, inode, protocol);
  const Duration cost = cpu_time_() - before;
  dumps_.pay(cost, clock_.now());
  return {keep(inode, std::move(found), cost)};
}

std::optional<Peers> SocketPeers::keep(std::uint64_t inode, std::optional<Peers> peers, Duration cost) {
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  entries_.get(inode, now) = {peers, now, cost};
  return peers;
}

std::optional<Peers> SocketPeers::ask_inet(pid_t pid, std::uint64_t inode, int protocol) {
  const auto all = diag_.inet_sockets(pid, protocol);
  if (!all) return std::nullopt;
  const auto own = std::ranges::find(*all, inode, &sys::InetSocket::inode);
  if (own == all->end()) return std::nullopt;
  if (protocol == IPPROTO_TCP) {
    const auto pairs = connected_pairs(*all);
    const Time now = clock_.now();
    const std::lock_guard lock(mutex_);
    for (const Connected& one : pairs) entries_.get(one.inode, now) = {Peers{{one.peer}, true}, now};
  }
  return inet_peers(*own, *all);
}

std::optional<Peers> SocketPeers::ask_unix(pid_t pid, std::uint64_t inode) {
  const auto own = diag_.unix_socket(pid, inode);
  if (!own) return std::nullopt;
  const bool settled = own->listening || own->peer != 0;
  if (settled) return unix_peers(*own, {});
  const auto all = diag_.unix_sockets(pid);
  Peers peers = unix_peers(*own, all.value_or({}));
  if (peers.inodes != std::vector{inode}) return peers;
  // Accepted between the two questions?
  const auto again = diag_.unix_socket(pid, inode);
  return again && again->peer != 0 ? unix_peers(*again, {}) : peers;
}

void SocketPeers::drop(std::uint64_t inode) {
  const std::lock_guard lock(mutex_);
  entries_.erase(inode);
}

std::size_t SocketPeers::size() {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace swapd::observe
