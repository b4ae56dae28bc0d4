// Keeps the kernel ready to move processes between cgroups (mmap_throttler.h). Before a move the kernel waits for a
// grace period of RCU, 7 to 50 ms and more on a busy machine, unless there was another move within the last 10 ms or
// so. While moves are likely a thread therefore puts swapd into the group that it is in, every 5 ms: that changes
// nothing. What it costs: forks, execs and exits take the slow path of that lock meanwhile, some 20 ns each.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/time.h"

namespace swapd::daemon {

class QuickMoves {
 public:
  // As FreezerGroup::place_for().
  QuickMoves(std::string proc_root, std::string cgroups);
  ~QuickMoves();
  QuickMoves(const QuickMoves&) = delete;
  QuickMoves& operator=(const QuickMoves&) = delete;

  // From now on for so long. One thread; does not wait.
  void keep_for(Duration duration);

 private:
  void run(const std::stop_token& stop) const;
  [[nodiscard]] bool is_over() const;

  std::string proc_root_, cgroups_;
  std::atomic<Time> until_{Time{}};
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::jthread thread_;  // last
};

}  // namespace swapd::daemon
