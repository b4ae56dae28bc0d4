// Sockets by inode: netlink sock_diag through libnl (sock_diag(7), linux/unix_diag.h, linux/inet_diag.h).
//
// The answers are those of one network namespace: our own, or the one of a given process, which is asked through a
// netlink socket that a short-lived helper thread opens in there (setns(2)); nothing of that namespace is kept, since
// an open socket would keep it alive.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

struct nl_sock;

namespace swapd::sys {

struct UnixSocket {
  std::uint64_t inode = 0;
  std::uint64_t peer = 0;  // 0: none, or one that has not been accepted yet
  int type = 0;            // SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET
  bool listening = false;
  std::string name;                            // sun_path as bound; an abstract one starts with a zero byte
  std::uint64_t file_dev = 0, file_inode = 0;  // of the socket's file, as st_dev and st_ino; 0: none
  std::vector<std::uint64_t> pending;          // of a listening one: those that wait to be accepted
};

struct InetAddress {
  std::array<std::uint8_t, 16> bytes{};  // IPv4 as ::ffff:a.b.c.d
  std::uint16_t port = 0;                // host order

  auto operator<=>(const InetAddress&) const = default;
  [[nodiscard]] bool any() const;  // 0.0.0.0 or ::
};

struct InetSocket {
  std::uint64_t inode = 0;  // 0: not accepted yet, or only the kernel's
  int protocol = 0;         // IPPROTO_TCP, IPPROTO_UDP
  bool listening = false;   // TCP
  bool v6_only = false;     // a wildcard of ours takes IPv6 alone
  bool v6 = false;
  InetAddress local;
  InetAddress remote;
};

class SockDiag {
 public:
  explicit SockDiag(std::string proc_root = "/proc");
  ~SockDiag();
  SockDiag(const SockDiag&) = delete;
  SockDiag& operator=(const SockDiag&) = delete;

  // Each asks the namespace of process `pid`; 0: our own. ENOENT: no such socket there.
  [[nodiscard]] Result<UnixSocket> unix_socket(pid_t pid, std::uint64_t inode);
  [[nodiscard]] Result<std::vector<UnixSocket>> unix_sockets(pid_t pid);
  // All of IPv4 and IPv6.
  [[nodiscard]] Result<std::vector<InetSocket>> inet_sockets(pid_t pid, int protocol);

 private:
  struct Closer {
    void operator()(nl_sock* socket) const;
  };
  using Socket = std::unique_ptr<nl_sock, Closer>;
  // The socket to ask: ours, or a new one that `other` then owns.
  [[nodiscard]] Result<nl_sock*> enter(pid_t pid, Socket& other);

  std::string proc_root_;
  Socket own_;
  std::uint64_t own_namespace_ = 0;
};

}  // namespace swapd::sys
