// What chosen threads had moved in all when they ended, from a BPF program (src/sys/bpf/lastio.bpf.c): /proc says it
// only as long as a thread lives (sys/thread_io.h).
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
  // Of a thread that was asked for; 0: of none.
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
  // Those that have ended, each once. Where nobody takes anything while a thousand end, some are not told.
  [[nodiscard]] std::vector<Ended> take(Owner owner);

 private:
  struct Impl;
  explicit LastIo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::sys
