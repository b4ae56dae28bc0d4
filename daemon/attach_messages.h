// What passes between swapd and swapd-attach, the program that installs a filter in a running process
// (sys/attach_filter.h). One request; one answer, on which the listener rides as SCM_RIGHTS while the process stands
// still; a GuardMessage `done` from swapd once somebody receives; the end of the socket once the process goes on.
#pragma once

#include <linux/filter.h>

#include <array>
#include <cstdint>

#include "base/time.h"

namespace swapd::daemon {

// Where the program finds what swapd gives it. Its arguments are those of swapd-guard, which it becomes where swapd
// does not say that somebody receives.
namespace attach_fd {
inline constexpr int socket = 3;
inline constexpr int swapd = 4;  // its pidfd
}  // namespace attach_fd

// How long a process stands still for swapd at most.
inline constexpr Duration most_still = std::chrono::milliseconds(500);

struct AttachRequest {
  static constexpr std::uint8_t current_version = 1;
  static constexpr std::size_t most_instructions = 2048;
  std::uint8_t version = current_version;
  bool allow_no_new_privs = false;
  std::uint16_t instructions = 0;
  std::int32_t pid = 0;
  std::uint64_t start_time = 0;
  std::uint64_t flags = 0;   // filter_flags()
  Duration::rep within = 0;  // for its threads to stop
  std::array<sock_filter, most_instructions> program{};
};

struct AttachAnswer {
  std::int32_t error = 0;  // an errno
  std::array<char, 252> text{};
};

}  // namespace swapd::daemon
