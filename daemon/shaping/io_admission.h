// What one receiver asks about each call of its programs (shaper.h). The receiver's thread alone.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "shaping/device_estimate.h"
#include "observe/io/io_calls.h"
#include "observe/io/io_target.h"
#include "shaping/io_uring_workers.h"
#include "shaping/shaper.h"
#include "sys/procfs/io_counters.h"

namespace swapd::daemon {

// A call may have the disk move so much more than itself: what is read ahead of it, which later calls fetch, so that it
// is not a mapped file's; and the folio of which it writes a few bytes, dirty as a whole.
inline constexpr decide::Tokens moves_besides = 2 << 20;

// A call between its entry and its settlement, which the delaying thread knows too. Or several that had not to wait, of
// which it is the last (IoAdmission::joins_last()).
struct ShapedCall {
  decide::Reservation passage;
  std::uint64_t calls = 1;
  decide::Tokens asked = 0;
  bool withdrawn = false;  // it was not made
  bool settled = false;
  bool held = false;  // now
  Duration waited{};
  std::shared_ptr<decide::Debts> debts;  // its thread's, which are paid first
  bool pages_only = false;               // it moves nothing: they count as far as they are pages'
  std::uint64_t signals = 0;             // that let it go on early

  [[nodiscard]] Time due(decide::Shaping& shaping, Time now);
};

class IoAdmission final : public observe::Gate {
 public:
  IoAdmission(Shaper& shaper, Fd listener, std::uint32_t slot);
  ~IoAdmission() override;
  IoAdmission(const IoAdmission&) = delete;
  IoAdmission& operator=(const IoAdmission&) = delete;
  [[nodiscard]] bool holds(const sys::Notification& notification) override;

 private:
  // What is known of a thread that makes calls here.
  struct Thread {
    pid_t tid = 0, tgid = 0;
    Time met{};      // when that was read
    Time settled{};  // its last call, with all that it had moved
    std::optional<sys::ThreadIo> io;
    sys::IoCounters counters;
    sys::NetIo::Counters traffic;
    bool counted = false;                           // its traffic is
    sys::LastIo::Serial end = 0;                    // 0: it will not be told of
    bool network[decide::Reservation::max_transfers] = {};  // the last call's transfers: not on a disk
    // The last call.
    std::shared_ptr<ShapedCall> call;
    const observe::IoCall* kind = nullptr;
    Shaper::ViewPtr view;  // under which it was let go on
    decide::Tokens asked = 0;
    decide::Tokens costs[decide::Reservation::max_transfers] = {};  // of each transfer, before the call
    // For what it has moved without a call, or more than its calls were thought to. Shaper::mutex_.
    std::shared_ptr<decide::Debts> debts = std::make_shared<decide::Debts>();
    decide::Reservation charged;   // for what it has moved without a call, last
    std::uint64_t faults = 0;  // major ones, by the last settlement that asked
    decide::Tokens ahead = 0;  // that the disk read ahead of its calls
    // Signals that have let its last calls go on early: the next one they do after `patience`, which grows.
    std::uint64_t signals = 0;
    Duration patience{};
    Time disturbed{};
    pid_t parent = 0;  // whose class it has, where nobody has told of it yet
    Time parent_sought{};
    std::optional<decide::Device> disk;  // the last one that it used
  };
  struct Seen {  // what the thread has done since its last call
    sys::IoCounters disk;
    sys::NetIo::Counters traffic;
  };
  struct Wanted {
    decide::Transfer transfers[decide::Reservation::max_transfers];
    bool network[decide::Reservation::max_transfers] = {};
    std::uint8_t count = 0;
    decide::Tokens asked = 1;
    bool known = true;  // that it moves no more
  };

  Thread* thread(pid_t tid, Time now);
  // Threads that have ended have made their last call, and paged in what they did after it.
  void settle_ended(Time now);
  void settle_last(pid_t tid, Thread& thread, const sys::IoCounters& in_all, Time now);
  [[nodiscard]] bool is_held(const ShapedCall& call) const;
  void take_back(Thread& thread, Time now) const;  // its call, which was not made
  void forget(pid_t tid, const Thread& thread) const;
  void drop_debts(pid_t tid, const Thread& thread) const;
  void erase(pid_t tid);
  void prune(Time now);
  [[nodiscard]] Shaper::ViewPtr view_of(Thread& thread, Time now);
  [[nodiscard]] pid_t member_above(pid_t tgid) const;
  void set_free(Thread& thread, pid_t tid, Time now);
  // What has been moved since the last time; nothing: the thread has ended.
  [[nodiscard]] std::optional<Seen> look(Thread& thread, pid_t tid, const Shaper::View& view);
  [[nodiscard]] sys::NetIo::Counters traffic_of(Thread& thread, pid_t tid, sys::NetIo& traffic) const;
  void ask_for_end(Thread& thread, pid_t tid, const Shaper::View& view);
  void note_entry(pid_t tid, const Thread& thread) const;
  void note_costs(pid_t tid, const Wanted& want) const;  // with the lock
  void take_paid(pid_t tid, sys::IoCounters& moved, bool anew) const;
  enum class Settles : std::uint8_t { call, all };  // all: with what was moved without one
  void settle(Thread& thread, const Seen& seen, const Shaper::View& view, Time now, Settles what);
  struct Paid {  // to and from a disk
    decide::Tokens read = 0, written = 0;
  };
  [[nodiscard]] static bool moves_bytes(const observe::IoCall& kind, const Shaper::View& view);
  Paid settle_call(Thread& thread, const Seen& seen, const Shaper::View& view, Time now);
  void settle_mapped(Thread& thread, const Seen& seen, const Paid& paid, const Shaper::View& view, Time now);
  void settle_workers(Thread& thread, const Shaper::View& view, Time now);
  void charge(Thread& thread, const Shaper::View& view, decide::Device device, decide::IoDirection direction, decide::Tokens bytes,
              Time now, bool pages) const;
  [[nodiscard]] decide::Tokens max_paged(Thread& thread) const;
  void note_signals(Thread& thread, Time now) const;
  [[nodiscard]] decide::Device disk_of_pages(const Thread& thread, const Shaper::View& view, Time now);
  // None: it is not to be held. Without transfers: it moves nothing that is limited.
  [[nodiscard]] std::optional<Wanted> wanted(const observe::IoCall& call, const sys::Notification& notification,
                                             const Thread& thread, const Shaper::View& view, Time now);
  [[nodiscard]] Wanted wanted_of_entry(const observe::IoCall& call, const sys::Notification& notification,
                                       const Thread& thread, const Shaper::View& view, Time now);
  [[nodiscard]] Wanted wanted_of_ring(const Thread& thread, pid_t tid, const Shaper::View& view, Time now);
  [[nodiscard]] Wanted wanted_of_submission(const std::vector<observe::IoRequest>& requests, pid_t tid,
                                            const Shaper::View& view, Time now);
  struct Left {
    decide::Tokens bytes = 1, cached = 0;  // cached: of them, and free
  };
  [[nodiscard]] Left left_in_file(const observe::IoCall& call, const sys::Notification& notification, std::int64_t size,
                                  const observe::ReadTarget& read, const Shaper::View& view,
                                  decide::Tokens asked) const;
  [[nodiscard]] decide::Tokens through_pipe(const observe::IoCall& call, const sys::Notification& notification,
                                            decide::Tokens asked) const;
  [[nodiscard]] bool may_join(const Thread& thread, const observe::IoCall& call, const Shaper::ViewPtr& view,
                              Time now) const;
  [[nodiscard]] bool joins_last(Thread& thread, const Wanted& want, const Shaper::View& view, Time now) const;
  [[nodiscard]] bool enter(Thread& thread, const Wanted& want, pid_t tid, Time& due, Time now) const;
  [[nodiscard]] bool hold(const sys::Notification& notification, const Thread& thread, bool favoured_wait, Time due,
                          Time now);

  Shaper& shaper_;
  std::shared_ptr<const Fd> listener_;
  std::uint32_t slot_;
  observe::IoTargets targets_;
  std::unordered_map<pid_t, Thread> threads_;
  std::shared_ptr<sys::LastIo> ends_;  // once it was asked for one
  sys::LastIo::Owner owner_ = 0;
  Shaper::ViewPtr of_listener_;  // the class that its programs were last in
  LikelyDevices likely_;
  RingWorkers workers_;
};

}  // namespace swapd::daemon
