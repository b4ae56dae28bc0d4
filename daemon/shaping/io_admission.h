// Decides about each call of one receiver's programs whether it goes on at once. The receiver's thread alone.
//
// It does the I/O: it reads what the kernel has counted of the thread, and finds out what the call is about to move.
// The ledger decides (decide/shaping/ledger.h), with one lock a call.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "observe/io/io_calls.h"
#include "observe/seccomp/receiver.h"
#include "shaping/call_inspector.h"
#include "shaping/io_uring_workers.h"
#include "shaping/shaping_parts.h"
#include "sys/procfs/io_counters.h"

namespace swapd::daemon {

class IoAdmission final : public observe::CallFilter {
 public:
  // slot: the listener's, in the guard's memory.
  IoAdmission(const ShapingParts& parts, actuate::Delays& delays, Fd listener, std::uint32_t slot);
  ~IoAdmission() override;
  IoAdmission(const IoAdmission&) = delete;
  IoAdmission& operator=(const IoAdmission&) = delete;
  [[nodiscard]] bool should_delay(const sys::Notification& notification) override;

 private:
  // A thread that makes calls here.
  struct Thread {
    decide::Caller caller;
    Time met{};  // when its process was read
    std::optional<sys::ThreadIo> io;
    IoCounters counters;
    TrafficCounters traffic;
    bool counted = false;                   // its traffic is
    sys::LastIo::Serial end = 0;            // 0: it will not be told of
    std::uint64_t faults = 0;               // major ones, by the last settlement that asked
    const observe::IoCall* kind = nullptr;  // of its last call that moved something
    bool may_join = false;                  // as the ledger said then
    std::optional<decide::Device> disk;     // the last one that it used
    decide::ClassTable::Member member;      // what its process is, as of `generation`
    std::uint64_t generation = 0;
    pid_t parent = 0;  // whose class it has, while nothing is known of its own
    Time parent_sought{};
  };

  // --- which thread is it, and in which class ---
  Thread* identify_thread(pid_t tid, Time now);
  [[nodiscard]] decide::ClassViewPtr view_of(Thread& thread, Time now);
  [[nodiscard]] decide::ClassViewPtr view_of_process(pid_t tgid) const;
  [[nodiscard]] decide::ClassViewPtr view_of_member(pid_t tgid, const decide::ClassTable::Member& member) const;
  [[nodiscard]] pid_t member_above(pid_t tgid) const;
  void erase(pid_t tid);
  void prune(Time now);
  void forget(const Thread& thread) const;

  // --- what has it moved ---
  // Since the last time; nothing: the thread has ended.
  [[nodiscard]] std::optional<decide::CallerMoved> look(Thread& thread, const decide::ClassView& view);
  void look_at_traffic(Thread& thread, decide::CallerMoved& moved, bool anew) const;
  void look_at_pages(Thread& thread, const decide::ClassView& view, decide::CallerMoved& moved, Time now);
  void look_at_workers(Thread& thread, const decide::ClassView& view, decide::CallerMoved& moved, Time now);
  [[nodiscard]] decide::Tokens max_paged(Thread& thread) const;
  [[nodiscard]] CallInspector::Subject subject(const Thread& thread, const decide::ClassView& view) const;
  [[nodiscard]] sys::NetIo* traffic_for(const decide::ClassView& view) const;

  // --- a thread ends, or is limited no more ---
  void ask_for_end(Thread& thread);
  void settle_ended(Time now);
  void settle_last(Thread& thread, const IoCounters& in_all, Time now);
  void set_free(Thread& thread, Time now);

  // --- the call ---
  [[nodiscard]] bool joins_last(Thread& thread, const observe::IoCall& call, const decide::ClassView& view, Time now,
                                const sys::Notification& notification, std::optional<decide::WantedCall>& want);
  [[nodiscard]] std::optional<decide::WantedCall> wanted(const observe::IoCall& call, Thread& thread,
                                                         const decide::ClassView& view,
                                                         const sys::Notification& notification, Time now);
  [[nodiscard]] bool hold(const sys::Notification& notification, const Thread& thread,
                          const decide::Ledger::Verdict& verdict);

  const ShapingParts& parts_;
  actuate::Delays& delays_;
  std::shared_ptr<const Fd> listener_;
  std::uint32_t slot_;
  CallInspector inspector_;
  IoUringWorkers workers_;
  decide::ClassViewPtr unlimited_;
  std::unordered_map<pid_t, Thread> threads_;
  sys::LastIo* ends_ = nullptr;  // once it was asked for one
  sys::LastIo::Owner owner_ = 0;
  decide::ClassViewPtr of_listener_;  // the class that its programs were last in
};

}  // namespace swapd::daemon
