// Sets that threads wait in (poll, select, epoll, io_uring): what was found in one is believed for a moment, and then
// looked at again.
//
// To read an epoll set costs some 2 µs a member, during which the kernel keeps the set's users waiting, and an event
// loop waits in the same one ten thousand times a second. No call that changes a set is seen: epoll_ctl, close, accept
// and the stores into a poll array are too frequent to be traced. So each look that finds a set as it was doubles the
// time for which it is believed, up to max_belief: a change is seen that late at most. A set that has changed is looked
// at for each wait until two looks in a row agree, so the array that a program fills anew for each poll is never
// believed. All looks together stay below a share of a CPU; where that needs longer pauses, sets are believed for
// longer than max_belief.
//
// The worker reads the set while the thread may be running already, and changing it. Such a look is doubtful: it can
// confirm, but it changes nothing until it has been found different max_doubtful times in a row.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/resource.h"
#include "base/time.h"
#include "observe/resolve/resolver.h"
#include "sys/process/pi_mutex.h"

namespace swapd::observe {

class WaitSetCache {
 public:
  struct Limits {
    Duration min_belief = std::chrono::milliseconds(1);   // after two looks that agree
    Duration max_belief = std::chrono::milliseconds(20);  // after many
    int pause = 19;              // times the CPU time of a look at each set in use: at most 5 % of a CPU …
    int pause_of_changing = 49;  // … and 2 % where sets change all the time
    Duration in_use = std::chrono::seconds(1);  // since the last wait in it
    int max_doubtful = 4;
    std::size_t max_sets = 1024;
    std::size_t max_resources = 65536;  // of all sets together, 40 bytes each
  };
  WaitSetCache() : WaitSetCache(Limits()) {}
  explicit WaitSetCache(const Limits& limits) : limits_(limits) {}

  struct Known {
    std::vector<Resource> awaited;
    Time until;             // a wait that lasts longer is to be looked at then
    bool believed = false;  // false: a guess; look now
  };
  // [engine] Empty: no look at this thread's set has been taken, or the worker is just taking one.
  [[nodiscard]] std::optional<Known> find(const CallSite& site, Time now);

  struct Look {
    std::vector<Resource> awaited;
    bool certain = false;  // the thread stood in the call when the set had been read
    Duration cost{};       // CPU time of the look
  };
  // [worker] Takes what was found in the set at the time `began`, and gives what is to be believed now.
  [[nodiscard]] std::vector<Resource> take(const CallSite& site, Look look, Time began);
  // [engine] Something else than what is believed has ended a wait in this set: looks again as soon as min_belief has
  // passed since the last look.
  void doubt(const CallSite& site);
  // Whether the thread has waited in this very set.
  [[nodiscard]] bool knows(const CallSite& site);
  // The process has ended, or executes another program.
  void forget(pid_t tgid);
  [[nodiscard]] std::size_t size();

 private:
  struct Key {
    pid_t tgid = 0;
    pid_t tid = 0;
    std::int32_t nr = -1;
    std::array<std::uint64_t, 3> args{};  // those that tell the set
    auto operator<=>(const Key&) const = default;
  };
  struct Set {
    std::vector<Resource> awaited;
    Time looked{};
    Time until{};
    Time used{};        // the last wait in it, or look at it
    Duration belief{};  // zero: it has changed at the last look, or is new
    Duration cost{};    // of the last look; zero: it is not in use
    int doubtful = 0;   // looks in a row that found it different
  };
  using Sets = std::map<Key, Set>;

  [[nodiscard]] static Key key_of(const CallSite& site);
  void believe(Set& set);
  void count_cost(Set& set, Duration cost);
  void leave_out_unused(Time now);
  void make_room();
  Sets::iterator erase(Sets::iterator at);

  Limits limits_;
  sys::PiMutex mutex_;
  Sets sets_;
  std::size_t resources_ = 0;
  Duration costs_{};  // of a look at each set in use
  Time counted_{};    // when those that are not in use were last left out
};

}  // namespace swapd::observe
