// Over which network link a socket talks: by its peer's route, or its own address (rtnetlink(7), through libnl), in the
// network namespace that it is in.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::sys {

struct SocketLink {
  bool inet = false;                    // IPv4 or IPv6; else it has no link
  bool connected = false;               // else each message may go elsewhere
  std::uint64_t network_namespace = 0;  // its inode
  std::uint32_t index = 0;              // of the link; 0: not known (not connected, no address)
};

// The link of a socket that another process has open; `socket` is a duplicate of it. `to`: the address it sends to, as
// sendto(2) has it, if it is not connected.
[[nodiscard]] Result<SocketLink> link_of(int socket, std::span<const std::byte> to = {});
// One of our own namespace. ENODEV.
[[nodiscard]] Result<SocketLink> link_named(const std::string& name);
// As above; "netns:INODE#INDEX" where it is of another namespace.
[[nodiscard]] std::string link_name(std::uint64_t network_namespace, std::uint32_t index);

}  // namespace swapd::sys
