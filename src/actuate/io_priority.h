// I/O priorities (ioprio_set(2)). A thread that has none of its own has that of its scheduling class and nice value, so
// its boost holds for the disk too. One with a worse of its own ("ionice -c idle") would keep its requester
// waiting for the disk: while it is boosted, its own is laid aside, and it too has that of its class.
//
// Recorded in the journal before, given back after. If another program sets one meanwhile, it stays, unless it is
// "none". A child that a boosted thread has forked has none until swapd has heard of it, and for good if swapd is
// killed before.
#pragma once

#include <string_view>
#include <unordered_map>

#include "actuate/journal.h"
#include "base/sched_attr.h"
#include "base/thread_id.h"
#include "sys/sched/scheduler.h"

namespace swapd::actuate {

// The order that the kernel serves them in: real-time, best effort, idle; in each 0 before 7.
struct IoPriority {
  enum class Class : std::uint8_t { none, realtime, best_effort, idle } io_class = Class::none;
  std::uint8_t level = 0;  // 0…7
  bool operator==(const IoPriority&) const = default;
};
[[nodiscard]] IoPriority io_priority_of(int raw);
// I/O priority of a thread with these attributes if it has none of its own (ioprio_set(2), "Selecting an I/O
// scheduler").
[[nodiscard]] IoPriority io_priority_of(const SchedAttr& attr);
[[nodiscard]] bool worse(IoPriority a, IoPriority b);

class IoPriorityOverride {
 public:
  IoPriorityOverride(const sys::Scheduler& scheduler, bool dry_run) : scheduler_(scheduler), dry_run_(dry_run) {}
  void set_journal(Journal* journal) { journal_ = journal; }

  // The thread is boosted with these attributes. Call again if they change.
  void lend(ThreadId thread, const SchedAttr& lent);
  void take_back(ThreadId thread);
  void forget(ThreadId thread);  // it has gone
  void became(ThreadId before, ThreadId now);
  // Its own I/O priority that is laid aside, raw; 0: none.
  [[nodiscard]] int saved_priority(ThreadId thread) const;

 private:
  struct Laid {
    int own = 0;
    Journal::Slot slot = Journal::none;
  };
  [[nodiscard]] Result<Journal::Slot> record(ThreadId thread, int own);

  const sys::Scheduler& scheduler_;
  bool dry_run_;
  Journal* journal_ = nullptr;
  std::unordered_map<ThreadId, Laid> laid_;
};

// Gives it back what an earlier run laid aside. False: it is gone, or another program has set another since.
[[nodiscard]] Result<bool> restore_io_priority(const sys::Scheduler& scheduler, const Change& change);

}  // namespace swapd::actuate
