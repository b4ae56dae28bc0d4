// The service manager's descriptor store (sd_pid_notify_with_fds(3), FDSTORE=1): a third holder of each listener, for
// the case that swapd and its guard are killed at once. It answers nobody: trapped calls wait until the next swapd has
// started, which the manager hands everything back to. Listeners leave it by themselves as their last program ends (the
// manager watches for the hang-up).
//
// Where no service manager has started us, all of this does nothing.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <vector>

#include "base/fd.h"
#include "guard/guard_takeover.h"

namespace swapd::daemon {

class FdStore {
 public:
  // Takes what the manager hands over. Once, before the first thread: it changes the environment. What is no listener
  // and no memory of slots is closed.
  [[nodiscard]] static FdStore open();
  FdStore(FdStore&&) noexcept;
  FdStore& operator=(FdStore&&) = delete;
  FdStore(const FdStore&) = delete;
  FdStore& operator=(const FdStore&) = delete;
  ~FdStore() = default;

  // The listeners that an earlier swapd had put there; each only once. Its guard may hold them as well.
  [[nodiscard]] std::vector<OrphanListener> take_left() { return std::move(left_); }
  // What that swapd had received and not answered, on a listener that no guard holds any more.
  void answer_left(int listener) const;

  // Any thread.
  void keep(int listener, pid_t launch) const;
  // Of this swapd's guard, in place of the earlier one's.
  void keep_slots(int memory) const;

 private:
  FdStore() = default;
  std::vector<OrphanListener> left_;
  std::vector<Fd> slots_;
};

}  // namespace swapd::daemon
