// The messages of swapd and swapd-attach, the program that installs a filter in a running process
// (sys/seccomp/attach_filter.h). One request; one answer, on which the listener rides as SCM_RIGHTS while the process
// stands still; a GuardMessage `done` from swapd once a receiver runs; the end of the socket once the process goes
// on.
#pragma once

#include <linux/filter.h>

#include <array>
#include <cstdint>

#include "base/time.h"

namespace swapd::daemon {

// Descriptors of the program. swapd places the socket there; if swapd may not start the program itself, it is a unit of
// systemd's (systemd/swapd-attach@.service.in), which does so (sd_listen_fds(3)). swapd's pidfd rides on the request.
namespace attach_fd {
inline constexpr int socket = 3;
}  // namespace attach_fd

// How long swapd may be silent before its request.
inline constexpr Duration max_silent = std::chrono::seconds(10);

// How long a process stands still for swapd at most.
inline constexpr Duration max_still = std::chrono::milliseconds(500);

struct AttachRequest {
  static constexpr std::uint8_t current_version = 2;
  static constexpr std::size_t max_instructions = 2048;
  std::uint8_t version = current_version;
  bool allow_no_new_privs = false;
  std::uint16_t instructions = 0;
  std::int32_t pid = 0;
  std::uint64_t start_time = 0;
  std::uint64_t flags = 0;   // filter_flags()
  Duration::rep within = 0;  // for its threads to stop
  // For the guard that the program becomes if swapd does not say that a receiver runs.
  Duration::rep stale = 0;
  std::array<char, 1024> state_dir{};  // ended by a 0
  std::array<sock_filter, max_instructions> program{};
};

struct AttachAnswer {
  std::int32_t error = 0;  // an errno
  std::array<char, 252> text{};
};

}  // namespace swapd::daemon
