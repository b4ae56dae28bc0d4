#include "guard_messages.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <chrono>
#include <cstring>

namespace swapd::daemon {

std::string guard_path(const std::string& state_dir, pid_t guard) {
  return state_dir + "/" + std::string(guard_prefix) + std::to_string(guard);
}

Status send_message(int socket, const GuardMessage& message, int fd) {
  iovec part{const_cast<GuardMessage*>(&message), sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  while (::sendmsg(socket, &header, MSG_NOSIGNAL) < 0)
    if (errno != EINTR) return errno_error("telling the guard");
  return Done{};
}

Result<GuardReceived> receive_message(int socket) {
  GuardReceived out;
  iovec part{&out.message, sizeof out.message};
  int fd = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) return errno_error("reading a guard message");
  if (n == 0) return Error(EPIPE, "the other side of the guard has ended");
  // Room for one leaves room for another, by the alignment: what is too much is closed.
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
    for (std::size_t at = 0; CMSG_LEN(at + sizeof fd) <= rights->cmsg_len; at += sizeof fd) {
      std::memcpy(&fd, CMSG_DATA(rights) + at, sizeof fd);
      Fd taken(fd);
      if (at == 0) out.fd = std::move(taken);
    }
  out.truncated = (header.msg_flags & MSG_CTRUNC) != 0;
  if (n != sizeof out.message || out.message.version != GuardMessage::current_version)
    return Error(EPROTO, "a guard message of another version");
  return out;
}

Result<GuardReceived> await_message(int socket, Duration within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Error(ETIMEDOUT, "waiting for the guard");
    pollfd entry{socket, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return errno_error("waiting for the guard");
    if (ready > 0) return receive_message(socket);
  }
}

}  // namespace swapd::daemon
