// Merges what the deciders want observed, and tells the observer what changes. Runs on the engine thread.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "decide/decider.h"
#include "observe/observer.h"

namespace swapd::daemon {

class InterestSet {
 public:
  explicit InterestSet(observe::Observer& observer) : observer_(observer) {}

  // Takes what one decider wants of these threads from now on. True: providers are watched that were not before, and
  // are to be told of at once (Observer::report_new()). New requesters are told of with the next drain: to open a watch
  // waits for a thread that is in execve(2), and what it does then must not be told before its exec is.
  bool apply(std::size_t decider, std::span<const decide::Interest> changed);
  [[nodiscard]] bool watches(ThreadId thread) const { return told_.contains(thread); }
  void forget(ThreadId thread);

 private:
  using Wish = std::pair<std::size_t, decide::Interest>;
  [[nodiscard]] static decide::Interest merged(std::span<const Wish> wishes);
  bool tell(const decide::Interest& now);

  observe::Observer& observer_;
  HashMap<ThreadId, Vector<Wish>> wishes_;
  HashMap<ThreadId, decide::Interest> told_;
};

}  // namespace swapd::daemon
