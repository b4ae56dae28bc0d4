// Counts what a parallel job is due of the machine's CPUs, and what it has had: run-time equalisation [DCS97 §3.2] on
// measured CPU time, for all of a job's threads together. A job that runs as a gang in slots may begin the next one
// when it is owed half of one, so that it has its fair share on average. Pure.
#pragma once

#include <algorithm>
#include <map>
#include <optional>

#include "base/thread_id.h"
#include "base/time.h"

namespace swapd::decide {

class CpuLedger {
 public:
  // A thread of the job is due `share` (0…1) of a CPU while it can run; again: from the next settlement on.
  void set_share(ThreadId thread, double share) { threads_[thread].share = std::clamp(share, 0.0, 1.0); }
  void forget(ThreadId thread) { threads_.erase(thread); }
  // cpu: CPU time that the thread has used in all. runnable: it is now. Its first settlement is where counting begins.
  void settle(ThreadId thread, Duration cpu, bool runnable, Time now);
  // Credit of all threads; what is owed to the job is positive. Bounded by `bound` both ways: a job that could not use
  // its share for long does not take it all at once later, and a debt is soon forgiven.
  [[nodiscard]] Duration credit() const { return credit_; }
  void set_bound(Duration bound);
  // CPUs that the threads are due together, as long as one of them can run, and how many can.
  [[nodiscard]] double due() const;
  [[nodiscard]] int runnable() const;
  // How long until the credit is `wanted`, if no thread of the job has a CPU; none: never.
  [[nodiscard]] std::optional<Duration> until(Duration wanted) const;

  // Since the first settlement.
  [[nodiscard]] Duration used() const { return used_; }
  [[nodiscard]] Duration entitled() const { return entitled_; }

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.threads_, self.credit_, self.bound_, self.used_, self.entitled_);
  }

 private:
  struct Account {
    double share = 1;
    bool known = false;  // it was settled before
    bool runnable = false;
    bool earns = false;  // it can run, or waits for a thread of the job that can
    Duration cpu{};
    Time settled{};
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.share, self.known, self.runnable, self.earns, self.cpu, self.settled);
    }
  };
  std::map<ThreadId, Account> threads_;
  Duration credit_{}, bound_ = std::chrono::milliseconds(50), used_{}, entitled_{};
};

}  // namespace swapd::decide
