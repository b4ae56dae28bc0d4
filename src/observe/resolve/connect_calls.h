// The socket that an address given to connect(2), sendto(2) or sendmsg(2) means.
#pragma once

#include <cstdint>
#include <string>

#include "sys/netlink/sock_diag.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

struct Address {
  std::uint64_t pointer = 0;  // into the caller's memory
  std::uint64_t size = 0;
  explicit operator bool() const { return pointer != 0 && size != 0; }
};

// Reads the address from the thread's memory. `connects`: of connect(2), so that it may be a TCP one; else of a
// datagram. 0: no socket here listens or is bound there.
[[nodiscard]] std::uint64_t destination(const sys::Procfs& procfs, sys::SockDiag& diag, pid_t tid,
                                        const Address& address, bool connects);
// msg_name of the struct msghdr at `message`.
[[nodiscard]] Address message_address(pid_t tid, std::uint64_t message);

}  // namespace swapd::observe
