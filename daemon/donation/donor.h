// From events to boosts: which threads to watch, who is favoured, what lingers, when a quantum is used (DESIGN.md
// sections 4–6). Runs on the engine thread; the kernel is reached only through the observer, the actuator and CPU
// timers.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actuate/actuator.h"
#include "base/time.h"
#include "decide/donation.h"
#include "engine/worker.h"
#include "model/managed_set.h"
#include "model/model.h"
#include "observe/observer.h"
#include "record/record_ring.h"
#include "sys/perf/perf.h"
#include "sys/process/event_loop.h"

namespace swapd::daemon {

class ProgressMonitor;
class WrongEvidence;

class Donor {
 public:
  struct Settings {
    decide::DonationRules rules;
    Duration rescan = std::chrono::milliseconds(250);      // holders of what is waited for, while the wait lasts
    Duration keep_watch = std::chrono::seconds(1);         // a provider is watched this long after its last wait tree
    Duration linger_wall = std::chrono::milliseconds(50);  // a lingering donation ends then whatever CPU was used
    bool ceiling = false;                                  // lent real-time CPU time is to be charged
    bool quota = false;                                    // and so is all that is lent for a user's waiters
    std::string wrong_provider;                            // for measurements: WrongEvidence names these processes
  };
  Donor(Settings settings, model::ManagedSet& members, model::Model& model, observe::Observer& observer,
        actuate::Actuator& actuator, Worker& worker, sys::EventLoop& loop);
  ~Donor();
  Donor(const Donor&) = delete;
  Donor& operator=(const Donor&) = delete;

  // Every event passes here before the reconciliation of its batch.
  void take(const Event& event);
  // Watches, asks, decides, applies. Call once for each batch of events.
  void reconcile(Time now);
  // Every few milliseconds while there are members.
  void tick(Time now);
  // Nobody waits whom something could be lent for, and nothing is lent: ticks may come late.
  [[nodiscard]] bool rests() const;
  // When run_clocks() must run at the latest.
  [[nodiscard]] std::optional<Time> deadline() const;
  void run_clocks(Time now);
  void found(const ScanAnswer& answer, Time now);
  void base_changed() { ranks_changed_ = true; }
  void has_forked(ThreadId parent, Time now);
  // exited: nothing to give back to it; else it is released, and gets its own attributes back with the next
  // reconcile().
  void forget(ThreadId thread, bool exited);

  // Decides as ever, and lends nothing.
  void pause(bool paused) { paused_ = paused; }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] const std::vector<decide::Donation>& donations() const { return current_; }
  [[nodiscard]] const std::unordered_map<Resource, std::vector<ThreadId>>& unenrolled() const { return unenrolled_; }
  // Somebody important has just begun to wait for what only a call that is still to come can name a provider of.
  [[nodiscard]] bool needs_calls_at_once(Time now);
  // What model and decider are fed with goes there, too.
  void record_to(RecordRing& ring) { records_ = &ring; }
  // Which sleep only for a moment, or in our own hand, and so would go on if something were lent to them.
  void takes_for_runnable(std::function<bool(const Blocked&)> which) { runnable_ = std::move(which); }
  [[nodiscard]] std::unique_ptr<RecordRing::Opening> opening(Time now) const;
  // Whoever waits does so for a chain all of which is lent to, and a message is on its way there: nobody needs us soon.
  [[nodiscard]] bool chain_is_open() const;
  [[nodiscard]] bool watched(ThreadId thread) const { return watched_.contains(thread); }

 private:
  struct Timer {
    ThreadId requester;
    ThreadId thread;  // whose CPU time it measures
    // By perf, or by the observer where that counts CPU time. Neither is to be had: the wall clock stands in.
    std::unique_ptr<sys::CpuTimer> perf;
    sys::EventLoop::Registration heard;  // perf's, in the loop
    // A quantum and a linger of the same two are two timers.
    enum class Use : std::uint8_t { quantum, linger } use = Use::quantum;
    bool on = false;
    Duration period{};
    Time wall_end{};
    // Where nothing tells of its end: nobody uses more CPU time than there is time, so it is looked at when the rest of
    // the period could have been used.
    Time armed{};
    Duration start{};
    Duration used{};
    Time due{};
    Time last_used{};
  };
  struct Lingering {
    decide::Donation donation;
    std::uint64_t timer = 0;  // 0: not armed yet
    bool moved = false;       // the wait goes on, for something else
    bool first_half = false;  // of a chain's; what has delivered then lets the woken go first
  };
  struct RecentWaits {  // what a requester was last lent for; two locks taken in turn are one conversation
    std::array<Resource, 4> resources;
    std::size_t next = 0;
  };
  struct UserBoost {  // to a provider of a user's waiter, while there are quotas
    std::uint32_t user = 0;
    std::optional<Duration> seen;  // of its CPU time
    Time looked{};
    std::uint64_t round = 0;
  };
  static constexpr std::size_t max_timers = 128;  // idle ones are dropped past this
  // How soon the CPU time of somebody whose clock does not ring is looked at again.
  static constexpr Duration min_look = std::chrono::microseconds(50);
  struct Charged {  // a thread with a real-time donation, while there is a ceiling
    Time since{};
    std::uint64_t clock = 0;  // of timers_; 0: the observer counts
    std::optional<Duration> seen;
    std::uint64_t round = 0;
  };
  using ChargedThreads = std::unordered_map<ThreadId, Charged>;
  struct Watch {
    Time last_needed{};
    bool important = false;
    bool traced = false;          // whom it wakes
    bool traced_at_once = false;  // and when
    bool urgent = true;           // what it does is told at once
    bool listed = false;          // in expecting_
    bool provides = false;        // in others_
    Time asked{};                 // who could end its wait
    ThreadId expected;            // who ends its usual wait: such waits are not told as long as that one runs
    Time forked{};                // so is a wait for the last child
  };

  void rank_watches(Time now);
  void rank_one(const model::ManagedThread& member, Time now);
  void touch(const Event& event);
  void begin_wait(ThreadId requester);
  void keep_while_it_moves(const Blocked& blocked);
  bool need(ThreadId thread, Time now);
  [[nodiscard]] bool unexplored(const std::vector<ThreadId>& open, Time now);
  void look_after_waits(Time now);
  void explore(ThreadId requester, Time now);
  void look_again(Time now);
  void remember_depths();
  void linger_on_the_way_back();
  void tell_of_the_last(ThreadId requester, Time now);
  void let_the_woken_go_first(const Lingering& lingering);
  // Two waits of the same requester, for the same thing, of the same direct provider.
  [[nodiscard]] static bool same_wait(const decide::Donation& a, const decide::Donation& b);
  [[nodiscard]] bool waits_for(ThreadId requester, const Resource& resource) const;
  [[nodiscard]] bool may_linger(const decide::Donation& donation) const;
  [[nodiscard]] Duration linger(ThreadId requester) const;
  [[nodiscard]] ClassId class_of(ThreadId thread) const;
  [[nodiscard]] SchedAttr attr_for(const decide::Donation& donation, ClassId requester, ClassId provider) const;
  [[nodiscard]] std::optional<SchedAttr> second_best(const decide::Donation& donation) const;
  [[nodiscard]] bool may_watch(ThreadId thread) const;
  void watch(ThreadId thread, bool important, Time now);
  void watch_as_other(ThreadId thread, Watch& watch);
  void unwatch_idle(Time now);
  enum class Ask : std::uint8_t { now, again, overdue };
  void ask_for_providers(ThreadId requester, Time now, Ask why);
  [[nodiscard]] Duration pause_before_asking(const model::ThreadView& waiter, Time now) const;
  void stop_waiting(ThreadId requester);
  void wait_ended(ThreadId requester);
  void look_for_another(ThreadId provider);
  void ask_for_another(ThreadId requester, Time now);
  void end_linger(ThreadId requester);
  void linger_over(ThreadId requester, Time now);
  void arm_lingers(Time now);
  void arm_quanta(Time now);
  // wall: when it is over in any case, for a linger and where CPU time cannot be had.
  void arm(Timer& timer, Duration wall, Time now);
  [[nodiscard]] bool counted(const Timer& timer) const;
  [[nodiscard]] bool looked_at(const Timer& timer) const;
  [[nodiscard]] std::optional<Time> earliest_due() const;
  [[nodiscard]] static bool rings(const Timer& timer);  // of itself, when its period is over
  [[nodiscard]] std::optional<Duration> cpu_time(const Timer& timer, Time now) const;
  // A timer's descriptor is readable. hung_up: and will stay so, because its thread has ended.
  void timer_expired(std::uint64_t key, bool hung_up, Time now);
  void disarm(Timer& timer);
  void expire(std::uint64_t key, Time now);
  [[nodiscard]] Duration used(const Timer& timer, Time now) const;
  void trace_candidates();
  void learn_whom_to_expect(const Woken& woken);
  void calm_the_others(Time now);
  void look_at_silent_waits(Time now);
  void step_down(actuate::Boost& boost, Time now) const;
  [[nodiscard]] bool above_requester(const decide::Donation& donation) const;
  void apply_boosts(Time now);
  void charge_boosts(Time now);
  [[nodiscard]] std::uint32_t charged_user(ThreadId requester) const;
  void follow_user_loans(const std::vector<actuate::Boost>& boosts, Time now);
  void charge_user_loans(Time now);
  void charge(ThreadId thread, UserBoost& loan, Time now);
  [[nodiscard]] std::optional<Duration> lent_cpu_time(ThreadId thread, Time now) const;
  std::optional<Duration> charge(Charged& charged, const actuate::Boost& boost, Time now);
  void begin_charge(ThreadId thread, std::uint64_t clock, Time now);
  void settle_charge(ThreadId thread, Time now);
  void settle_charges(const std::unordered_map<ThreadId, actuate::Boost>& kept, Time now);
  void time_loans(const std::unordered_map<ThreadId, actuate::Boost>& loans);
  void begin_charges(const std::unordered_map<ThreadId, actuate::Boost>& loans, Time now);
  ChargedThreads::iterator end_charge(ChargedThreads::iterator at);
  void time_no_more(ThreadId thread);
  [[nodiscard]] std::uint64_t clock_of(ThreadId thread) const;
  // The three ways to model and decider; each is recorded.
  void apply(const Event& event);
  void decide(Time now);
  void forget_decision(ThreadId requester);
  [[nodiscard]] bool important(const model::ManagedThread& thread) const;
  [[nodiscard]] std::uint64_t timer_for(ThreadId requester, ThreadId thread, Timer::Use use, Time now);
  void end_quantum(ThreadId requester);
  void drop_timers(ThreadId thread);

  Settings settings_;
  bool paused_ = false;
  model::ManagedSet& members_;
  model::Model& model_;
  observe::Observer& observer_;
  actuate::Actuator& actuator_;
  Worker& worker_;
  sys::EventLoop& loop_;
  decide::DonationDecider decider_;
  RecordRing* records_ = nullptr;
  std::function<bool(const Blocked&)> runnable_;

  std::unordered_map<ThreadId, Watch> watched_;
  std::unordered_set<ThreadId> waiting_;  // important and blocked on something that somebody may provide
  // Those of them that lend, or for which something has changed since it was decided last: the others need no look.
  std::unordered_set<ThreadId> active_;
  std::vector<ThreadId> round_;  // of waiting_: still to be looked after in this round
  Time round_began_{};
  Duration last_round_{};
  std::vector<ThreadId> enrolled_;  // since the ranks were looked at
  int ranked_lowest_ = 0;
  struct NewWait {
    ThreadId requester;
    Time since{};
  };
  std::deque<NewWait> sysv_waits_;  // that have begun lately
  std::vector<decide::Donation> current_;
  std::unordered_map<ThreadId, Lingering> lingering_;       // by requester
  std::unordered_map<ThreadId, decide::Donation> deepest_;  // by requester: the longest way of its present wait
  std::vector<ThreadId> expecting_;                         // that wait in silence for somebody
  std::size_t next_expecting_ = 0;
  std::vector<ThreadId> others_;                      // watched as providers only
  std::vector<ThreadId> urgent_;                      // of them: told of at once
  std::vector<ThreadId> newly_blocked_;               // in this batch
  std::unordered_map<ThreadId, RecentWaits> recent_;  // by requester
  std::unordered_map<Resource, Time> scanned_;
  std::size_t max_scanned_ = 0;  // swept past this
  std::unordered_map<Resource, std::vector<ThreadId>> unenrolled_;
  std::unordered_map<std::uint64_t, Timer> timers_;
  std::unordered_map<ThreadId, std::uint64_t> quantum_timer_;  // by requester, while armed
  ChargedThreads charged_;
  std::unordered_set<ThreadId> timed_;  // for that
  std::uint64_t charges_ = 0;           // rounds
  std::unordered_map<ThreadId, UserBoost> user_loans_;
  std::uint64_t user_rounds_ = 0;
  const sys::Procfs procfs_;
  std::optional<Time> next_charge_;  // when somebody could be at the ceiling
  std::uint64_t next_timer_ = 1;
  std::optional<Time> next_due_;  // of timers_, or earlier
  bool ranks_changed_ = true;
  std::vector<Event> scratch_;
  const std::unique_ptr<ProgressMonitor> progress_;
  const std::unique_ptr<WrongEvidence> wrong_evidence_;  // most often null
};

}  // namespace swapd::daemon
