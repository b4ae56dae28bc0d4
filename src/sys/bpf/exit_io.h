// I/O totals of chosen threads at their exit, from a BPF program (programs/lastio.bpf.c): /proc has them only as long
// as a thread lives (sys/procfs/io_counters.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "sys/procfs/io_counters.h"

namespace swapd::sys {

class LastIo {
 public:
  using Owner = std::uint32_t;
  // Identifies one request for a thread's totals; 0: none.
  using Serial = std::uint64_t;
  // EPERM, ENOTSUP …: it cannot be had here.
  [[nodiscard]] static Result<std::unique_ptr<LastIo>> open();
  ~LastIo();
  LastIo(const LastIo&) = delete;
  LastIo& operator=(const LastIo&) = delete;

  // Any thread, as the others.
  [[nodiscard]] Owner add();
  void drop(Owner owner);
  // Its end will be told to the owner. E2BIG: too many are asked for.
  [[nodiscard]] Result<Serial> ask(pid_t tid, Owner owner);
  void forget(pid_t tid, Serial serial);
  struct Ended {
    pid_t tid = 0;
    Serial serial = 0;
    IoCounters in_all;
  };
  // The threads that have ended, each once. If the owner takes none while a thousand end, some are not told.
  [[nodiscard]] std::vector<Ended> take(Owner owner);

 private:
  struct Impl;
  explicit LastIo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::sys
