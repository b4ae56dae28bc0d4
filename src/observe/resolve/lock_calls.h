// fcntl(2) record locks: what a blocked F_SETLKW or F_OFD_SETLKW asks for, and the arithmetic of its range. Who holds
// a lock is found in lock_holders.h.
#pragma once

#include <fcntl.h>

#include <optional>

#include "base/resource.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

struct RangeRequest {
  std::uint64_t first = 0, last = UINT64_MAX;
  bool write = true;
};

// `position` and `size` of the file serve SEEK_CUR and SEEK_END. Empty: a range that the kernel would refuse.
[[nodiscard]] std::optional<RangeRequest> requested_range(const struct flock& lock, std::uint64_t position,
                                                          std::uint64_t size);
// Reads the struct flock that the thread passed at `address` about its descriptor `fd`.
[[nodiscard]] std::optional<RangeRequest> requested_range(const sys::Procfs& procfs, pid_t tid, int fd,
                                                          std::uint64_t address);

}  // namespace swapd::observe
