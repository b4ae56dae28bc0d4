// IPv4 and IPv6 traffic of chosen threads, counted by a BPF program because no file of /proc has it
// (programs/netio.bpf.c).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "base/io_counters.h"
#include "base/result.h"

namespace swapd::sys {

class NetIo {
 public:
  // EPERM, ENOTSUP …: it cannot be had here.
  [[nodiscard]] static Result<std::unique_ptr<NetIo>> open();
  ~NetIo();
  NetIo(const NetIo&) = delete;
  NetIo& operator=(const NetIo&) = delete;

  // Counted from now on, from 0. E2BIG: too many are. Any thread, as the others.
  [[nodiscard]] Status count(pid_t tid);
  void forget(pid_t tid);
  using Counters = TrafficCounters;
  [[nodiscard]] Result<Counters> read(pid_t tid) const;  // ENOENT: it is not counted

 private:
  struct Impl;
  explicit NetIo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::sys
