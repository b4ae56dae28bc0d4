// The engine's news for the control thread: for `swapctl events`, as far as a client follows, and for the journal.
//
// Events and outcomes become notes in a bounded queue. What happens again and again is told the first time, and after a
// pause with how often it was not.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "actuate/actuator.h"
#include "base/event.h"
#include "base/fd.h"
#include "base/rate_limiter.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "decide/donation/provider_choice.h"
#include "engine/note_queue.h"
#include "engine/snapshot.h"
#include "model/managed_set.h"

namespace swapd::daemon {

class EventFeed {
 public:
  EventFeed(const model::ManagedSet& members, const Clock& clock);

  // --- control thread ---
  void want(Notes detail) { wanted_.store(detail, std::memory_order_relaxed); }
  // Donations are told for the journal, too, within a budget of lines.
  void want_journal(bool wanted) { journal_wanted_.store(wanted, std::memory_order_relaxed); }
  // Readable once there are notes.
  [[nodiscard]] int fd() const { return wake_.get(); }
  [[nodiscard]] std::vector<Note> take();

  // --- engine thread ---
  [[nodiscard]] bool wants(Notes detail) const { return wanted_.load(std::memory_order_relaxed) >= detail; }
  // Notes for which there was no room.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  // whole_process: the event is its process's, too.
  void on_event(const Event& event, bool whole_process);
  void on_spawned(ThreadId child, pid_t tgid, ThreadId parent, Time now);
  // By a command: the process is managed again, or is not any more.
  void on_managed(ThreadId leader, bool managed, Time now);
  // A thread was not enrolled, because its user has as many as it may have.
  void on_over_quota(ThreadId thread, pid_t tgid, std::uint32_t uid, Time now);
  // The donations in force after a decision: each pair of requester and provider that was not there after the last one
  // is an inversion found.
  void on_donations(const Vector<decide::Donation>& donations);
  void on_outcome(const actuate::Outcome& outcome);

 private:
  using Pair = std::pair<ThreadId, ThreadId>;
  struct HashPair {
    std::size_t operator()(const Pair& pair) const {
      return std::hash<ThreadId>()(pair.first) ^ (std::hash<ThreadId>()(pair.second) * 3);
    }
  };
  void push(Note note);
  [[nodiscard]] pid_t tgid_of(ThreadId thread) const;

  const model::ManagedSet& members_;
  const Clock& clock_;
  Fd wake_;
  NoteQueue queue_;
  std::atomic<Notes> wanted_{Notes::none};
  std::atomic<bool> journal_wanted_{false};
  RateLimiter told_{std::chrono::seconds(1)};  // inversions and limits
  RateLimiter journalled_;
  TokenBucket journal_room_{2, 20, Time{}};   // lines a second, and at once, however many pairs there are
  std::unordered_set<Pair, HashPair> found_;  // pairs of the last decision …
  std::unordered_set<Pair, HashPair> now_;    // … and of this one: kept for its memory
  std::uint64_t lost_ = 0;
};

}  // namespace swapd::daemon
