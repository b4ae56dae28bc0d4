// The threads that stand still for the limits of their class at the moment, and those that are favoured. Pure.
//
// A thread is held in a call, or frozen with its whole process. A favoured thread (an important one waits for it) is
// not delayed, unless its class says so.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/time.h"
#include "decide/shaping/caller.h"

namespace swapd::decide {

class HeldThreads {
 public:
  struct Favoured {  // what a thread that is favoured from now on stands still in
    bool held = false, frozen = false;
  };
  Favoured favour(pid_t tid, bool favoured);
  [[nodiscard]] bool is_favoured(pid_t tid) const { return favoured_.contains(tid); }

  void hold(const std::shared_ptr<const PendingCall>& call);
  // Its thread's next call may be held already.
  void end(const PendingCall& call);
  struct Frozen {
    Time since;
    bool favoured_wait = false;
    std::shared_ptr<const Debts> debts;
  };
  void freeze(std::span<const pid_t> threads, const Frozen& frozen);
  void thaw(std::span<const pid_t> threads);
  // The end of a stop of a whole process, which counts as one delay.
  void count_freeze() { ++total_; }

  [[nodiscard]] bool holds(pid_t tid) const { return held_.contains(tid) || frozen_.contains(tid); }
  // It would go on if it were favoured: it can provide, though it sleeps.
  [[nodiscard]] bool would_run(pid_t tid) const;
  [[nodiscard]] std::vector<std::pair<pid_t, Time>> would_run() const;  // since when
  struct Delay {
    Time since;
    Tokens share = 0;  // the call waits for so many bytes before it moves any; 0: for its turn
    Tokens debt = 0;   // the thread has moved so many before, and pays for them
  };
  [[nodiscard]] std::unordered_map<pid_t, Delay> delays() const;
  [[nodiscard]] std::size_t count() const { return held_.size() + frozen_.size(); }
  [[nodiscard]] std::uint64_t total() const { return total_; }  // since the start

 private:
  std::unordered_map<pid_t, std::shared_ptr<const PendingCall>> held_;
  std::unordered_map<pid_t, Frozen> frozen_;
  std::unordered_set<pid_t> favoured_;
  std::uint64_t total_ = 0;
};

}  // namespace swapd::decide
