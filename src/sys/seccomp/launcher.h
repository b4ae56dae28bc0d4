// The launcher's side of a launch (launch.h has the whole protocol; docs/design.md, Launch), and the memory it is
// about.
#pragma once

#include <linux/filter.h>

#include <chrono>
#include <span>

#include "base/result.h"
#include "sys/seccomp/launch.h"

namespace swapd::sys::launch {

struct Go {
  std::span<const sock_filter> program;
  Shared* shared = nullptr;
  bool allow_no_new_privs = false;
  std::chrono::milliseconds timeout{5000};
  const char* name = "swapctl";  // begins the line of a late failure
};

// Installs the filter and waits for swapd's go-ahead; then the caller may execve. An error means that nothing was
// installed.
//
// With the filter in, there is no way back: it cannot be removed, the caller's trapped calls hang until swapd answers
// them and give ENOSYS once the listener is closed, and write(2), needed to tell the user, may be one of them. So a
// failure after the install does not return. It is told by a thread that was started before the install, which the
// filter does not hold (a filter is its thread's), and the process exits with status 1. When all goes well that thread
// is joined: the caller is single-threaded before and after, and has no child to reap.
[[nodiscard]] Status install_and_wait(const Go& go);

// Maps the memory that a launcher sent. EINVAL: too small, of another version, or not sealed against shrinking, with
// which a launcher could make swapd fault.
[[nodiscard]] Result<Shared*> map_shared(int memory);
void unmap_shared(Shared* shared);

}  // namespace swapd::sys::launch
