// The requests of an io_uring that wait for their files, as the kernel keeps them (io_uring(7),
// programs/io_uring.bpf.c).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"

namespace swapd::sys {

struct RingRequest {
  std::uint8_t opcode = 0;  // IORING_OP_…, <linux/io_uring.h>
  int fd = -1;              // -1: a fixed file, or one whose number has been closed since
  std::uint64_t dev = 0;    // as in FdIdentity
  std::uint64_t ino = 0;
  std::uint32_t events = 0;  // of POLL_ADD: as in poll(2)
};

class RingRequests {
 public:
  // Loads the program. ENOTSUP, EPERM: the kernel, or our privileges, do not allow it (6.1, CAP_BPF, CAP_PERFMON).
  [[nodiscard]] static Result<std::unique_ptr<RingRequests>> open();
  ~RingRequests();
  RingRequests(const RingRequests&) = delete;
  RingRequests& operator=(const RingRequests&) = delete;

  // ENOTSUP: the kernel lists the requests of a process's first thread, and those of no other (before October 2024).
  // Starts a thread that tries it.
  [[nodiscard]] Status lists_any_thread();

  // At most 256 of them. ENOTSUP: the kernel gives all threads where one was asked for (6.0), or none where the thread
  // is not its process's first. registered: `ring` is
  // what IORING_REGISTER_RING_FDS gave the thread. EBADF: it is no ring.
  [[nodiscard]] Result<std::vector<RingRequest>> list(pid_t tid, int ring, bool registered);

 private:
  struct Impl;
  explicit RingRequests(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::sys
