// The engine thread: real-time, and the only one that uses model, deciders and actuator.
//
// Each round it merges by time what the observer, the worker, the process connector and the timers tell, feeds the
// model, reconciles, and goes back to sleep. It never logs: the control thread is told through a bounded queue
// (EventFeed), or gets a snapshot on request.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "actuate/actuator.h"
#include "base/asked_priority.h"
#include "base/fd.h"
#include "decide/donation/donation_decider.h"
#include "decide/shaping/auto_limit_decider.h"
#include "engine/command_queue.h"
#include "engine/competitor_watch.h"
#include "engine/decision_loop.h"
#include "engine/engine_affinity.h"
#include "engine/event_feed.h"
#include "engine/listener_table.h"
#include "engine/member_tracker.h"
#include "engine/membership_signal.h"
#include "engine/own_cpu.h"
#include "engine/pacer.h"
#include "engine/snapshot.h"
#include "engine/weight_watch.h"
#include "engine/worker.h"
#include "kernel.h"
#include "model/managed_set.h"
#include "model/model.h"
#include "observe/seccomp/receiver.h"
#include "observe/seccomp/seccomp_observer.h"
#include "record/record_ring.h"
#include "shaping/shaper.h"
#include "sys/bpf/bpf_tracer.h"
#include "sys/netlink/proc_events.h"
#include "sys/process/event_loop.h"

namespace swapd::daemon {

class Engine : private MemberTracker::Followers {
 public:
  struct Options {
    model::Settings model;
    decide::DonationConfig donation;
    DecisionLoop::Config decisions;
    observe::SeccompObserver::Settings observe;
    actuate::Actuator::Options actuate;
    int priority = 93;  // SCHED_FIFO of the engine thread; receivers that follow a member get one more
    Duration tick = std::chrono::milliseconds(10);
    Duration idle_tick = std::chrono::milliseconds(100);  // while no requester waits and nothing is lent
    UserQuota::Limits quota;
    decide::ObservationBudget::Config budget;
    // The names of the classes 1, 2 …, in the order in which `model`, `donation` and `actuate` have them.
    std::vector<std::string> classes;
  };
  // tracer: observe with it; null: with seccomp.
  // shaper: is told which process is in which class, and which threads are favoured.
  Engine(const Kernel& kernel, observe::Resolver& resolver, Options options, std::unique_ptr<sys::BpfTracer> tracer,
         Shaper& shaper);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Recovers the journal and starts the thread. Warnings (missing privileges) are appended.
  [[nodiscard]] Status start(std::vector<std::string>& warnings);
  // Gives everything back and ends the thread.
  void stop();

  // Runs on the engine thread and waits for it; for commands and snapshots. False where the engine has stopped.
  bool call(std::function<void(Engine&)> command);

  // --- on the engine thread, through call() ---
  // io: its filter traps I/O calls, too.
  void add_listener(std::shared_ptr<observe::Receiver> receiver, pid_t pid, const std::string& class_name, bool io,
                    Time now);
  // A listener of an earlier swapd: its processes come with reenroll().
  void adopt_listener(std::shared_ptr<observe::Receiver> receiver, pid_t launch);
  void remove_listener(const observe::Receiver* receiver);
  // Whether processes are observed through a filter, which must be installed in them.
  [[nodiscard]] bool needs_listeners() const { return seccomp_ != nullptr; }
  // Whether the process is under a filter of ours, and whether that traps I/O calls.
  [[nodiscard]] bool has_listener(pid_t tgid) const { return listeners_.contains(tgid); }
  [[nodiscard]] bool has_io(pid_t tgid) const { return listeners_.has_io(tgid); }
  // Brings the managed set up to date: a child that is born by now is managed as its parent is.
  void catch_up();
  // See MemberTracker.
  [[nodiscard]] Result<std::size_t> enroll_threads(const std::vector<RosterAnswer::Entry>& threads,
                                                   const std::string& class_name);
  [[nodiscard]] Result<std::size_t> reenroll(const std::vector<RosterAnswer::Entry>& threads,
                                             const model::Membership& as);
  [[nodiscard]] Status manage_again(pid_t pid, const std::string& class_name);
  void move_class(const std::string& from, const std::string& to);
  [[nodiscard]] Status release(pid_t pid) { return tracker_->release(pid, kernel_.clock.now()); }
  void remember_released(pid_t pid, std::uint64_t start_time) { tracker_->remember_released(pid, start_time); }
  [[nodiscard]] bool knows(pid_t pid, std::uint64_t start_time) const { return tracker_->knows(pid, start_time); }
  [[nodiscard]] std::vector<model::Membership> memberships() const { return tracker_->memberships(); }
  [[nodiscard]] const UserQuota& quota() const { return quota_; }
  // See BasePriority.
  [[nodiscard]] Status set_base(pid_t pid, const AskedPriority& asked, bool may_raise);
  // For the next swapd, and of the last one.
  [[nodiscard]] std::vector<model::SavedConfidence> learnt(std::size_t most) const { return model_.learnt(most); }
  void restore_confidences(const std::vector<model::SavedConfidence>& lessons) { model_.restore_confidences(lessons); }
  void pause(bool paused);
  [[nodiscard]] Snapshot snapshot() const;
  [[nodiscard]] Counters counters();
  // The process may be in another cgroup now.
  void look_at_weight(pid_t pid) { weights_.moved(pid); }
  // For the decider of automatic limits; what follows is applied before the engine sleeps again.
  void tell_auto_limits(const decide::Input& input) { decisions_->tell(input); }
  [[nodiscard]] const decide::AutoLimitDecider& auto_limits() const { return *auto_limits_; }
  // A snapshot goes into the ring, and what follows after it.
  void record_from_here();
  [[nodiscard]] const model::ManagedSet& members() const { return members_; }

  // --- from the control thread ---
  [[nodiscard]] EventFeed& feed() { return feed_; }
  [[nodiscard]] RecordRing& records() { return records_; }  // signals feed().fd()
  [[nodiscard]] int wake_fd() const { return commands_.fd(); }
  // Processes have come or gone, or changed their class.
  [[nodiscard]] MembershipSignal& membership_signal() { return membership_; }

 private:
  void run();
  void round(Time now);
  [[nodiscard]] std::optional<Duration> time_to_sleep(Time now) const;
  void let_records_gather(Time& now);
  void take_what_happened(Time now);
  void take(const Event& event);
  void take_answers(Time now);
  void take_proc_events(Time now);
  void tick(Time now);
  void keep_to_budget(Time now);
  void poll_held_threads(Time now);
  [[nodiscard]] bool would_run(const Blocked& blocked) const;
  void check_waiting_priorities(Time now);
  void have_receivers_follow();
  void keep_off_members(Time now);
  void on_outcome(const actuate::Outcome& outcome);
  [[nodiscard]] bool idle() const;

  // MemberTracker::Followers
  void on_event(const Event& event) override;
  void on_left(ThreadId thread, bool exited) override;
  void on_forked(ThreadId parent, Time now) override;
  void on_process_born(pid_t child, pid_t parent) override;
  void on_process_released(pid_t tgid, std::uint64_t start_time) override;
  void on_image_gone(pid_t tgid) override;
  void on_number_free(pid_t tid) override;

  Kernel kernel_;
  observe::Resolver& resolver_;
  Options options_;
  Shaper& shaper_;
  sys::EventLoop loop_;  // before all that stand in it
  CommandQueue commands_;
  sys::EventLoop::Registration hears_commands_;
  MembershipSignal membership_;
  model::ManagedSet members_;
  UserQuota quota_;
  model::Model model_;
  actuate::Actuator actuator_;
  Worker worker_;
  EventFeed feed_;
  ListenerTable listeners_;
  CompetitorWatch competitors_;
  WeightWatch weights_;
  RecordRing records_{feed_.fd()};
  std::unique_ptr<observe::Observer> observer_;
  observe::SeccompObserver* seccomp_ = nullptr;  // the same, if it is one
  std::optional<MemberTracker> tracker_;
  // Of the deciders.
  const decide::DonationDecider* donation_ = nullptr;
  const decide::AutoLimitDecider* auto_limits_ = nullptr;
  std::unique_ptr<DecisionLoop> decisions_;
  std::unique_ptr<sys::ProcEvents> proc_events_;
  std::unordered_map<pid_t, Time> held_before_;  // by the limits of their class, as of the last tick
  std::string trouble_;                          // what the observer cannot do at present; empty: nothing
  std::vector<Event> events_;                    // of this round; kept for its memory
  std::optional<EngineAffinity> placement_;      // none: the own affinity cannot be read
  Pacer pacer_;
  OwnCpu own_cpu_;
  bool lends_to_kernel_threads_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace swapd::daemon
