#include "guard/guard_messages.h"

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
  return send_with_fd(socket, &message, sizeof message, fd);
}

Status send_with_fd(int socket, const void* data, std::size_t size, int fd) {
  iovec part{const_cast<void*>(data), size};
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
    if (errno != EINTR) return errno_error("sending a message");
  return Done{};
}

Result<ReceivedWithFds> receive_with_fds(int socket, void* data, std::size_t size) {
  constexpr std::size_t most = 8;
  ReceivedWithFds out;
  iovec part{data, size};
  int fd = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(most * sizeof fd)] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) return errno_error("reading a message");
  if (n == 0) return Error(EPIPE, "the other side has ended");
  out.size = static_cast<std::size_t>(n);
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
    for (std::size_t at = 0; CMSG_LEN(at + sizeof fd) <= rights->cmsg_len; at += sizeof fd) {
      std::memcpy(&fd, CMSG_DATA(rights) + at, sizeof fd);
      out.fds.emplace_back(fd);
    }
  out.truncated = (header.msg_flags & MSG_CTRUNC) != 0;
  return out;
}

Result<ReceivedWithFd> receive_with_fd(int socket, void* data, std::size_t size) {
  auto received = receive_with_fds(socket, data, size);
  if (!received) return std::move(received).error();
  ReceivedWithFd out;
  out.size = received->size;
  out.truncated = received->truncated;
  if (!received->fds.empty()) out.fd = std::move(received->fds.front());  // what is too much is closed
  return out;
}

Result<GuardReceived> receive_message(int socket) {
  GuardReceived out;
  auto received = receive_with_fd(socket, &out.message, sizeof out.message);
  if (!received) return std::move(received).error();
  if (received->size != sizeof out.message || out.message.version != GuardMessage::current_version)
    return Error(EPROTO, "a guard message of another version");
  out.fd = std::move(received->fd);
  out.truncated = received->truncated;
  return out;
}

Status await_readable(int socket, Duration within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Error(ETIMEDOUT, "waiting for the other side");
    pollfd entry{socket, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return errno_error("waiting for the other side");
    if (ready > 0) return Done{};
  }
}

Result<GuardReceived> await_message(int socket, Duration within) {
  if (Status readable = await_readable(socket, within); !readable) return std::move(readable).error();
  return receive_message(socket);
}

}  // namespace swapd::daemon
