// Demands that stand from turn to turn, by thread, and which of them have changed: so that the many that stand cost
// nothing in a turn that is about others. Pure.
#pragma once

#include <span>
#include <vector>

#include "decide/decider.h"

namespace swapd::decide {

class LastingDemands {
 public:
  // A plan begins: what changes from now on has changed.
  void begin() { changed_.clear(); }
  // All of the thread's, in the order in which they stand; none: it has none.
  void set(ThreadId thread, std::span<const RunAs> demands);
  // All there are, in any order of the threads.
  void set_all(std::span<const RunAs> demands);

  [[nodiscard]] std::span<const RunAs> of(ThreadId thread) const;
  [[nodiscard]] std::span<const RunAs> all() const { return demands_; }
  // Threads whose demands have changed since begin(), in no order; one may be there twice.
  [[nodiscard]] std::span<const ThreadId> changed() const { return changed_; }

 private:
  std::vector<RunAs> demands_;  // sorted by thread
  std::vector<RunAs> before_;   // of set_all(); kept for its memory
  std::vector<ThreadId> changed_;
};

}  // namespace swapd::decide
