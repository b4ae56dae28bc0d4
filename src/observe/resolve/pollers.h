// Threads that try, sleep for a moment and try again: a database's busy handler, a lock file, a loop around
// fcntl(F_SETLK) or flock(LOCK_NB). No call of theirs says what they wait for, and the sleep is ended by time alone.
// But a lock that another process holds on a file that the thread's process has open is most likely what it tries to
// get.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/resource.h"
#include "base/time.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

class Pollers {
 public:
  // The place where a program sleeps: the call, and those of its arguments that stay as they are when the time changes.
  struct Place {
    std::int32_t nr = -1;
    std::array<std::uint64_t, 3> args{};
    bool operator==(const Place&) const = default;
  };
  // [engine] The thread begins to sleep. `found`: it is known what it tries to get. True: it has slept for
  // short at one place again and again, and it is time to look at what it tries to get: often as long as something is
  // found, ever more seldom where nothing is.
  [[nodiscard]] bool sleeps(pid_t tid, const Place& place, bool found, Time now);
  // Has it slept so lately?
  [[nodiscard]] bool polls(pid_t tid, Time now) const;
  void forget(pid_t tid);

 private:
  struct Sleeper {
    Place place;
    unsigned in_a_row = 0;
    Time last{};    // that a sleep began
    Time looked{};  // at what it tries to get
    Duration pause{};
  };
  mutable std::mutex mutex_;  // the engine never waits for it
  std::unordered_map<pid_t, Sleeper> sleepers_;
};

// A file that a process has open.
// The locks on these files that another process than `own` holds: those that exclude others, and where there is none
// those that are shared, which a writer waits for.
[[nodiscard]] std::vector<Resource> contended_locks(std::span<const sys::LockLine> locks, std::span<const FileId> files,
                                                    pid_t own);

}  // namespace swapd::observe
