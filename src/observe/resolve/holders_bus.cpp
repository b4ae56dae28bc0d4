// Holders: processes that are not managed and have the other ends of many clients' sockets, and who is behind them.
#include <sys/stat.h>

#include <algorithm>
#include <unordered_set>

#include "observe/resolve/holders.h"
#include "observe/resolve/relays.h"

namespace swapd::observe {

namespace {

constexpr Duration table_age = std::chrono::milliseconds(50);
constexpr std::size_t max_servers = 8;
constexpr std::size_t max_behind = 8;
constexpr std::size_t max_connected = 64;  // processes that want a CPU: are they connected to the bus?

}  // namespace

// Behind a message bus: managed processes that are connected to it, too, and want a CPU.
void Holders::guess_behind(const Waiter& waiter, const Pids& others, std::span<const pid_t> members, Time asked,
                           Found& out) {
  const auto is_bus = [this](pid_t pid) { return is_message_bus(procfs_.comm(pid).value_or("")); };
  const auto bus = std::ranges::find_if(others, is_bus);
  if (bus == others.end()) return;
  const Duration since_asked = std::max(Duration::zero(), clock_.now() - asked);
  const auto is_socket = [](const auto& i) { return (i.mode & S_IFMT) == S_IFSOCK; };
  std::unordered_set<std::uint64_t> ends;
  for (const auto& entry : fds_.find(*bus, std::max(table_age, since_asked), is_socket))
    ends.insert(entry.identity.ino);
  const auto is_connected = [&](pid_t pid) {
    return std::ranges::any_of(fds_.find(pid, std::max(table_age, since_asked), is_socket), [&](const auto& entry) {
      const auto peers = peers_.look(pid, entry.identity.ino).peers;
      return peers && std::ranges::any_of(peers->inodes, [&](std::uint64_t one) { return ends.contains(one); });
    });
  };
  std::size_t looked = 0;
  for (const pid_t pid : members) {
    if (pid == waiter.tgid || out.behind.size() >= max_behind || looked >= max_connected) continue;
    const auto threads = threads_of(pid, waiter.tid, asked);
    const auto stat = threads.empty() ? Error(ESRCH, "") : procfs_.stat(threads.front().tid);
    if (!stat || stat->state != 'R' || (++looked, !is_connected(pid))) continue;
    out.behind.push_back(threads.front());
  }
}

// Who has the other ends of some clients' sockets has those of new ones, too: to look at it anew takes less than to
// look at all.
Holders::Pids Holders::among_servers(const Resource& resource, std::span<const pid_t> members, Duration max_age) {
  if (resource.kind != ResourceKind::socket) return {};
  std::erase_if(servers_, [&](pid_t pid) { return std::ranges::find(members, pid) != members.end(); });
  return among(resource, servers_, max_age);
}

void Holders::remember_servers(const Pids& pids) {
  for (const pid_t pid : pids) {
    std::erase(servers_, pid);
    servers_.insert(servers_.begin(), pid);
  }
  if (servers_.size() > max_servers) servers_.resize(max_servers);
}

}  // namespace swapd::observe
