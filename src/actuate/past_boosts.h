// Threads that ran, or still run, with a boost, for the children that they forked then: the birth of a child is heard
// of later. The last 64 are remembered. Pure. Internal to actuate/.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/sched_attr.h"
#include "base/thread_id.h"

namespace swapd::actuate {

struct Past {
  ThreadId thread;
  SchedAttr base;
  SchedAttr set;
  int io_priority = 0;  // of its own, laid aside meanwhile; raw
};

class PastBoosts {
 public:
  static constexpr std::size_t max_remembered = 64;

  void remember(const Past& former) {
    past_[next_] = former;
    next_ = (next_ + 1) % past_.size();
  }
  // The newest of the thread. Empty: none is remembered.
  [[nodiscard]] std::optional<Past> newest(ThreadId thread) const {
    for (std::size_t back = 1; back <= past_.size(); ++back) {
      const Past& past = past_[(next_ + past_.size() - back) % past_.size()];
      if (past.thread == thread) return past;
    }
    return std::nullopt;
  }

 private:
  std::array<Past, max_remembered> past_{};
  std::size_t next_ = 0;
};

}  // namespace swapd::actuate
