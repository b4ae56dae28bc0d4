// A path as the address of a unix socket. Source: unix(7).
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <optional>
#include <string>

namespace swapd {

struct UnixAddress {
  sockaddr_un text{};
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&text); }
  static constexpr socklen_t size = sizeof(sockaddr_un);
};

// Empty: the path is longer than 107 bytes.
[[nodiscard]] inline std::optional<UnixAddress> unix_address(const std::string& path) {
  UnixAddress address;
  if (path.size() >= sizeof address.text.sun_path) return std::nullopt;
  address.text.sun_family = AF_UNIX;
  std::memcpy(address.text.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace swapd
