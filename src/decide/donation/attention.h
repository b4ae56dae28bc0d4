// Decides which threads are observed, and how closely (docs/design.md, Donation). Pure.
//
// Requesters are watched all the time; a provider from the moment that a wait tree needs it until none has for a while.
// A watched thread's doings are told at once while a wait tree needs it, and with the next batch after that.
#pragma once

#include <cstddef>
#include <vector>

#include "decide/decider.h"

namespace swapd::decide {

class Attention {
 public:
  [[nodiscard]] bool watches(ThreadId thread) const { return table_.contains(thread); }
  void watch_requester(ThreadId thread, pid_t tgid, Time now);
  void watch_provider(ThreadId thread, pid_t tgid, Time now);
  // It is a requester no more; it stays watched for a while.
  void demote(ThreadId thread);
  // A wait tree needs it: it stays watched, and urgent. False: it is not watched.
  bool need(ThreadId thread, Time now);
  // It stays watched. False: it is not.
  [[nodiscard]] bool keep(ThreadId thread, Time now);
  // How often a watched thread may wait before only waits that last are told (Interest::patience). 0: as often as it
  // likes.
  void set_patience(Duration patience);
  // Its wakeups of other threads matter.
  void trace_wakes(ThreadId thread);

  // `provider` alone ends such waits of this watched thread: they need not be told. An invalid one: they must be.
  void expect(ThreadId waiter, ThreadId provider);
  [[nodiscard]] ThreadId expected(ThreadId waiter) const;
  // A wait for a child that a watched thread has just made need not be told for a second either.
  void forked(ThreadId parent, Time now);
  // No wait goes on untold for long: looks at those that may.
  void look_at_unreported(Time now, std::vector<Look>& out);

  // Threads that no wait tree has needed lately are told of with the batch …
  void calm(Time now);
  // … and after `keep` are not watched any more: those are named.
  void unwatch_idle(Time now, Duration keep, Vector<ThreadId>& unwatched);
  void forget(ThreadId thread);

  // When it was last asked who could end this thread's wait; null: it is not watched.
  [[nodiscard]] Time* asked(ThreadId thread);
  [[nodiscard]] bool idle() const { return expecting_.empty(); }

  // Interests that have changed since the last call.
  void add_interests(std::vector<Interest>& out);

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.table_, self.expecting_, self.next_expecting_, self.others_, self.urgent_, self.changed_,
            self.patience_);
  }

 private:
  struct Watch {
    Interest wants;
    Time last_needed = never;
    bool listed = false;    // in expecting_
    bool provides = false;  // in others_
    Time asked = never;
    Time forked = never;
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.wants.thread, self.wants.tgid, self.wants.watch, self.wants.urgent, self.wants.wakes,
              self.wants.expected, self.wants.patience, self.wants.new_child, self.last_needed, self.listed,
              self.provides, self.asked, self.forked);
    }
  };
  Watch& add(ThreadId thread, pid_t tgid, Time now);
  void list_as_other(ThreadId thread, Watch& watch);
  void list_as_expecting(ThreadId thread, Watch& watch);
  void changed(ThreadId thread) { changed_.push_back(thread); }

  HashMap<ThreadId, Watch> table_;
  std::vector<ThreadId> expecting_;  // threads that may wait untold
  std::size_t next_expecting_ = 0;
  std::vector<ThreadId> others_;   // watched as providers only
  std::vector<ThreadId> urgent_;   // … of them, told of at once
  std::vector<ThreadId> changed_;  // since add_interests()
  Duration patience_ = std::chrono::milliseconds(1);
};

}  // namespace swapd::decide
