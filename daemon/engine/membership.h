// Membership in the managed set, on the engine's thread: its tracker with all that changes it (events of processes,
// commands, rosters, what the groups of threads weigh), and the listeners that managed processes are under.
//
// Other stages hear of each change through MemberNews, in the order in which it happens.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actuate/actuator.h"
#include "base/asked_priority.h"
#include "decide/donation/donation_decider.h"
#include "engine/decision_loop.h"
#include "engine/engine_thread.h"
#include "engine/event_feed.h"
#include "engine/listener_table.h"
#include "engine/member_tracker.h"
#include "engine/membership_signal.h"
#include "engine/observation.h"
#include "engine/user_quota.h"
#include "engine/weight_watch.h"
#include "engine/worker.h"
#include "kernel.h"
#include "model/managed_set.h"
#include "shaping/shaper.h"
#include "sys/netlink/proc_events.h"

namespace swapd::daemon {

// Tells the other stages what happens to the managed set.
class MemberNews final : public MemberTracker::Followers {
 public:
  MemberNews(WeightWatch& weights, DecisionLoop& decisions, Observation& observation, Shaper& shaper)
      : weights_(weights), decisions_(decisions), observation_(observation), shaper_(shaper) {}

  void on_event(const Event& event) override {
    weights_.on_event(event);
    decisions_.take(event);
  }
  void on_left(ThreadId thread, bool exited) override { decisions_.forget(thread, exited); }
  void on_forked(ThreadId parent, Time now) override { decisions_.forked(parent, now); }
  void on_process_born(pid_t child, pid_t parent) override { shaper_.born(child, parent); }
  void on_process_released(pid_t tgid, std::uint64_t start_time) override { shaper_.release(tgid, start_time); }
  void on_image_gone(pid_t tgid) override { observation_.forget_image(tgid); }
  void on_number_free(pid_t tid) override { shaper_.favour(tid, false); }

 private:
  WeightWatch& weights_;
  DecisionLoop& decisions_;
  Observation& observation_;
  Shaper& shaper_;
};

class Membership {
 public:
  // All outlive it.
  struct Parts {
    const Kernel& kernel;
    model::ManagedSet& members;
    Observation& observation;
    actuate::Actuator& actuator;
    DecisionLoop& decisions;
    Worker& worker;
    EventFeed& feed;
    EngineThread& thread;
    Shaper& shaper;
  };
  struct Options {
    UserQuota::Limits quota;
    bool weights_count = false;        // the policy has them
    bool kernel_threads_help = false;  // the policy has waits for the kernel's own work count
    int receiver_priority = 94;        // SCHED_FIFO of receivers that follow a member
    bool dry_run = false;              // set_base() changes nothing
  };
  Membership(const Parts& parts, Options options);

  // Once, before the engine runs. What it has to do without is appended.
  void open_events(std::vector<std::string>& warnings);

  // --- commands ---
  // io: its filter traps I/O calls, too.
  void add_listener(std::shared_ptr<observe::Receiver> receiver, pid_t pid, const std::string& class_name, bool io,
                    Time now);
  // A listener of an earlier swapd: its processes come with reenroll().
  void adopt_listener(std::shared_ptr<observe::Receiver> receiver, pid_t launch);
  void remove_listener(const observe::Receiver* receiver);
  // See MemberTracker.
  [[nodiscard]] Result<std::size_t> enroll_threads(const std::vector<RosterAnswer::Entry>& threads,
                                                   const std::string& class_name);
  [[nodiscard]] Result<std::size_t> reenroll(const std::vector<RosterAnswer::Entry>& threads,
                                             const model::Membership& as);
  [[nodiscard]] Status manage_again(pid_t pid, const std::string& class_name);
  void move_class(const std::string& from, const std::string& to);
  [[nodiscard]] Status release(pid_t pid) { return tracker_.release(pid, parts_.kernel.clock.now()); }
  void remember_released(pid_t pid, std::uint64_t start_time) { tracker_.remember_released(pid, start_time); }
  // See BasePriority.
  // Another program has changed a boosted thread's own attributes; taken up with the next tick.
  void rebased(ThreadId thread, const SchedAttr& base) { rebased_.emplace_back(thread, base); }
  [[nodiscard]] Status set_base(pid_t pid, const AskedPriority& asked, bool may_raise);
  // The process may be in another cgroup now.
  void look_at_weight(pid_t pid) { weights_.moved(pid); }

  // --- questions ---
  [[nodiscard]] const ListenerTable& listeners() const { return listeners_; }
  [[nodiscard]] const MemberTracker& tracker() const { return tracker_; }
  [[nodiscard]] const UserQuota& quota() const { return quota_; }
  // The thread is blocked in an I/O call that a filter traps: its receiver lets it go on in a moment.
  [[nodiscard]] bool awaits_receiver(const Blocked& blocked) const;

  // Processes have come or gone, or changed their class. Any thread.
  [[nodiscard]] MembershipSignal& signal() { return signal_; }

  // --- the engine's rounds ---
  // Brings the managed set up to date: a child that is born by now is managed as its parent is.
  void read_events(Time now);
  void on_process_event(const sys::ProcEvent& event) { tracker_.on_process_event(event, parts_.kernel.clock.now()); }
  void on_lost(std::uint64_t events) { tracker_.on_lost(events, parts_.kernel.clock.now()); }
  void on_blocked(const Blocked& blocked);
  void take(const RosterAnswer& answer, Time now) { tracker_.take_roster(answer, now); }
  void take(const WeightsAnswer& answer, Time now) { weights_.take(answer, tracker_, now); }
  void tick(std::span<const decide::Donation> donations, Time now);
  void ask_weights() { weights_.ask(); }
  // Whether receivers wake the engine for each call. True: that has changed.
  bool set_urgent(bool urgent) { return listeners_.set_urgent(urgent); }

 private:
  void check_waiting_priorities(std::span<const decide::Donation> donations, Time now);
  void have_receivers_follow();

  Parts parts_;
  Options options_;
  MembershipSignal signal_;
  UserQuota quota_;
  ListenerTable listeners_;
  WeightWatch weights_;
  MemberNews news_;
  MemberTracker tracker_;
  std::vector<std::pair<ThreadId, SchedAttr>> rebased_;
  std::unique_ptr<sys::ProcEvents> proc_events_;  // null: the observer tells, or scans find the children
};

}  // namespace swapd::daemon
