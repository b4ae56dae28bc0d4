// Sending and receiving GuardMessages, with a descriptor or without, and where the next swapd does. Built into the
// guard's program too.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"
#include "guard/guard.h"

namespace swapd::daemon {

inline constexpr std::string_view guard_prefix = "guard.";
// STATE_DIR/guard.PID: the socket of a guard.
[[nodiscard]] std::string guard_path(const std::string& state_dir, pid_t guard);

struct GuardReceived {
  GuardMessage message;
  Fd fd;                   // what rode on it
  bool truncated = false;  // a descriptor did, and found no place in our table
};

// Messages of any kind, with a descriptor or without (-1).
[[nodiscard]] Status send_with_fd(int socket, const void* data, std::size_t size, int fd);
struct ReceivedWithFd {
  std::size_t size = 0;
  Fd fd;
  bool truncated = false;
};
// Does not block. EAGAIN: nothing is there. EPIPE: the other side has closed.
[[nodiscard]] Result<ReceivedWithFd> receive_with_fd(int socket, void* data, std::size_t size);
// The same of a message that several may ride on.
struct ReceivedWithFds {
  std::size_t size = 0;
  std::vector<Fd> fds;
  bool truncated = false;
};
[[nodiscard]] Result<ReceivedWithFds> receive_with_fds(int socket, void* data, std::size_t size);
// ETIMEDOUT.
[[nodiscard]] Status await_readable(int socket, Duration within);

[[nodiscard]] Status send_message(int socket, const GuardMessage& message, int fd = -1);
// Does not block. EAGAIN: nothing is there. EPIPE: the other side has closed. EPROTO: of another version, or no
// message.
[[nodiscard]] Result<GuardReceived> receive_message(int socket);
// Waits for one. ETIMEDOUT.
[[nodiscard]] Result<GuardReceived> await_message(int socket, Duration within);

}  // namespace swapd::daemon
