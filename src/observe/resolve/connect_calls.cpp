#include "observe/resolve/connect_calls.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "observe/resolve/socket_peers.h"

namespace swapd::observe {

namespace {

template <typename T>
T as(const sockaddr_storage& storage) {
  T out{};
  std::memcpy(&out, &storage, sizeof out);
  return out;
}

std::uint64_t unix_destination(const sys::Procfs& procfs, sys::SockDiag& diag, pid_t tid, const std::string& name) {
  const auto all = diag.unix_sockets(tid);
  if (!all) return 0;
  // Every accepted socket carries the name of its listener, so only those that can be connected or sent to count.
  const auto open = [](const sys::UnixSocket& s) { return s.listening || s.type == SOCK_DGRAM; };
  const bool abstract = name.front() == 0;
  if (!abstract) {
    // A path is only a name: what it leads to from where the caller stands is the socket's file.
    const auto file = procfs.path_identity(tid, name);
    for (const auto& socket : *all) {
      if (file && open(socket) && socket.file_inode == static_cast<std::uint32_t>(file->ino) &&
          socket.file_inode != 0 && socket.file_dev == file->dev)
        return socket.inode;
    }
  }
  const auto found = std::find_if(all->begin(), all->end(), [&](const auto& s) { return open(s) && s.name == name; });
  return found == all->end() ? 0 : found->inode;
}

}  // namespace

std::uint64_t destination(const sys::Procfs& procfs, sys::SockDiag& diag, pid_t tid, const Address& address,
                          bool connects) {
  sockaddr_storage storage{};
  const std::size_t size = std::min<std::uint64_t>(address.size, sizeof storage);
  if (size < sizeof(sa_family_t) || !sys::Procfs::read_memory(tid, address.pointer, &storage, size)) return 0;
  if (storage.ss_family == AF_UNIX) {
    const auto path = as<sockaddr_un>(storage);
    const std::size_t length = std::min(size, sizeof path) - offsetof(sockaddr_un, sun_path);
    std::string name(path.sun_path, length);
    if (!name.empty() && name.front() != 0) name.resize(::strnlen(name.data(), name.size()));
    return name.empty() ? 0 : unix_destination(procfs, diag, tid, name);
  }
  sys::InetAddress to;
  if (storage.ss_family == AF_INET) {
    const auto v4 = as<sockaddr_in>(storage);
    to.bytes[10] = to.bytes[11] = 0xff;
    std::memcpy(to.bytes.data() + 12, &v4.sin_addr, 4);
    to.port = ntohs(v4.sin_port);
  } else if (storage.ss_family == AF_INET6) {
    const auto v6 = as<sockaddr_in6>(storage);
    std::memcpy(to.bytes.data(), &v6.sin6_addr, 16);
    to.port = ntohs(v6.sin6_port);
  } else {
    return 0;
  }
  for (const int protocol : {IPPROTO_TCP, IPPROTO_UDP}) {
    if (protocol == IPPROTO_TCP && !connects) continue;
    const auto all = diag.inet_sockets(tid, protocol);
    const std::uint64_t found = all ? inet_listener(to, protocol, *all) : 0;
    if (found != 0) return found;
  }
  return 0;
}

Address message_address(pid_t tid, std::uint64_t message) {
  msghdr header{};
  if (!sys::Procfs::read_memory(tid, message, &header, offsetof(msghdr, msg_iov))) return {};
  return {reinterpret_cast<std::uint64_t>(header.msg_name), header.msg_namelen};
}

}  // namespace swapd::observe
