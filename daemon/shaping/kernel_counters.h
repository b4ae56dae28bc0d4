// Two counters of the kernel that are opened when a class first needs them, and may not be had: the traffic of threads,
// and what a thread had moved before its end.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/missing_piece.h"
#include "sys/bpf/exit_io.h"
#include "sys/bpf/net_io.h"

namespace swapd::daemon {

class KernelCounters {
 public:
  // Opens it, the first time. Any thread, as the others.
  void want_traffic();
  void want_ends();
  // Null: not wanted yet, or it cannot be had. It stays as long as this.
  [[nodiscard]] sys::NetIo* traffic() const { return traffic_.counter.load(std::memory_order_acquire); }
  [[nodiscard]] sys::LastIo* ends() const { return ends_.counter.load(std::memory_order_acquire); }
  // Those that cannot be had, and what is done instead.
  [[nodiscard]] std::vector<MissingPiece> missing() const;

 private:
  template <typename Counter>
  struct Opened {
    std::once_flag wanted;
    std::unique_ptr<Counter> owner;
    std::atomic<Counter*> counter{nullptr};
  };
  template <typename Counter>
  void open(Opened<Counter>& opened, const char* lost, const char* instead);

  Opened<sys::NetIo> traffic_;
  Opened<sys::LastIo> ends_;
  mutable std::mutex mutex_;  // missing_
  std::vector<MissingPiece> missing_;
};

}  // namespace swapd::daemon
