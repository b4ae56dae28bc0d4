// A message with descriptors on it, as many as one likes (unix(7), SCM_RIGHTS).
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace swapd::fakes {

// What sendmsg(2) returns.
inline ssize_t send_descriptors(int socket, std::span<const std::byte> data, std::span<const int> descriptors) {
  iovec part{.iov_base = const_cast<std::byte*>(data.data()), .iov_len = data.size()};
  std::vector<std::max_align_t> control(CMSG_SPACE(descriptors.size_bytes()) / sizeof(std::max_align_t) + 1);
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  return ::sendmsg(socket, &header, MSG_NOSIGNAL);
}

}  // namespace swapd::fakes
