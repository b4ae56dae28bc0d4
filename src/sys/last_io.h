// What chosen threads had moved in all when they ended, from a BPF program (src/sys/bpf/lastio.bpf.c): /proc says it
// only as long as a thread lives (sys/thread_io.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "sys/thread_io.h"

namespace swapd::sys {

class LastIo {
 public:
  using Serial = std::uint64_t;  // of a thread that was asked for; 0: of none
  // EPERM, ENOTSUP …: it cannot be had here.
  [[nodiscard]] static Result<std::unique_ptr<LastIo>> open();
  ~LastIo();
  LastIo(const LastIo&) = delete;
  LastIo& operator=(const LastIo&) = delete;

  // Its end will be told. E2BIG: too many are asked for. Any thread, as the others.
  [[nodiscard]] Result<Serial> ask(pid_t tid);
  void forget(pid_t tid, Serial serial);
  struct Ended {
    pid_t tid = 0;
    IoCounters in_all;
  };
  // Those that have ended and are the caller's, each once. Of a burst of a thousand ends between two of these, some are
  // not told.
  [[nodiscard]] std::vector<Ended> take(const std::function<bool(pid_t, Serial)>& is_own);

 private:
  struct Impl;
  explicit LastIo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::sys
