// Carries out what deciders want (docs/design.md, Data flow): feeds model and deciders with events, asks the deciders
// for their plans, has the arbiter choose among their demands, and applies the result. Runs on the engine thread;
// reaches the kernel only through the observer, the actuator and CPU clocks, and so can be run with fakes of them.
//
// A turn asks each decider until its plan is complete, at most `max_rounds` times: in between, looks are made and newly
// watched threads are reported, and what they tell is fed back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actuate/actuator.h"
#include "decide/panel.h"
#include "engine/boost_charges.h"
#include "engine/boost_meter.h"
#include "engine/cpu_clocks.h"
#include "engine/interest_set.h"
#include "engine/questions.h"
#include "engine/wrong_evidence.h"
#include "model/managed_set.h"
#include "model/model.h"
#include "record/record_ring.h"

namespace swapd::daemon {

class DecisionLoop {
 public:
  // Parts that the loop works on; all outlive it.
  struct Parts {
    const model::ManagedSet& members;
    model::Model& model;
    observe::Observer& observer;
    actuate::Actuator& actuator;
    Questions& questions;
    const sys::Procfs& procfs;
    RecordRing& records;
    sys::EventLoop& loop;  // for CPU clocks
  };
  struct Config {
    decide::BudgetConfig budgets;
    std::string wrong_provider;  // for measurements: WrongEvidence names these processes
  };
  DecisionLoop(Parts parts, Config config, std::vector<std::unique_ptr<decide::Decider>> deciders);
  ~DecisionLoop();
  DecisionLoop(const DecisionLoop&) = delete;
  DecisionLoop& operator=(const DecisionLoop&) = delete;

  struct Hooks {
    // A blocked thread counts as runnable if this says so: swapd itself delays its call, or is about to answer it.
    std::function<bool(const Blocked&)> runnable;
    // Gets each class's automatic limit that changes; none: it has no limit any more.
    std::function<void(const std::string&, std::optional<std::int64_t>)> limit_io;
    // Gets the threads of which messages are to be told, whenever deciders may name others, or the same ones anew.
    std::function<void(std::span<const ThreadId>)> listen;
    // Gets the CPUs whose threads are to take short turns, where that has changed.
    std::function<void(const decide::ShortTurns&)> short_turns;
    // Gets the processes that are to be away from memory, where they have changed.
    std::function<void(std::span<const pid_t>)> put_away;
  };
  void use(Hooks hooks) { hooks_ = std::move(hooks); }

  // Every event passes here before the turn of its batch.
  void take(const Event& event);
  // Tells what only deciders learn of; run() follows.
  void tell(const decide::Input& input) { on(input); }
  void found(const ScanAnswer& answer, Time now);
  void forked(ThreadId parent, Time now);
  // exited: nothing is to be given back to it; else it is released, and gets its own attributes back with the next
  // turn.
  void forget(ThreadId thread, bool exited);
  // Decides and applies. Call once for each batch of events.
  void run(Time now);
  // Every few milliseconds while anything is managed; run() follows.
  void tick(Time now);
  // Clocks that have run out, and boosts that are to be looked at; run() follows.
  void run_clocks(Time now);

  // Decides as ever, and changes nothing.
  void pause(bool paused);
  [[nodiscard]] bool paused() const { return paused_; }
  // When run_clocks() and run() must be called at the latest.
  [[nodiscard]] std::optional<Time> next() const;
  // The same of what is not to come later for the sake of swapd's own budget: slots, and ceilings.
  [[nodiscard]] std::optional<Time> punctual_next() const;
  // Nothing is in flight: ticks may come late.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] bool needs_calls() const { return panel_.needs_calls(); }
  [[nodiscard]] bool may_batch() const { return panel_.may_batch(); }
  [[nodiscard]] bool watches(ThreadId thread) const { return interests_.watches(thread); }
  // Threads that are not managed and hold what is awaited.
  [[nodiscard]] const std::unordered_map<Resource, std::vector<ThreadId>>& unenrolled() const { return unenrolled_; }
  // The present state, for a recording to begin with.
  [[nodiscard]] std::unique_ptr<RecordRing::Opening> opening(Time now) const;

  static constexpr int max_rounds = 16;

 private:
  void on(const decide::Input& input);
  void apply_demands(Time now);
  void apply_limits();
  void apply_standing();
  void give_way();
  [[nodiscard]] bool observe(Time now);
  void look(const decide::Look& look, Time now, std::vector<Event>& told);
  void ask(Time now);
  void tell_all(std::span<const decide::TimerFired> fired);

  Parts parts_;
  decide::Panel panel_;
  InterestSet interests_;
  ExactTiming exact_;
  BoostCharges charges_;
  CpuClocks clocks_;
  BoostMeter meter_;
  std::unique_ptr<WrongEvidence> wrong_evidence_;  // most often null
  Hooks hooks_;
  std::unordered_map<Resource, std::vector<ThreadId>> unenrolled_;
  struct InForce {
    decide::Panel::Limits limits;
    std::vector<pid_t> away;  // that are to be
    decide::ShortTurns short_turns;
  } in_force_;
  bool paused_ = false, tick_ = false;
  // Empty between calls; kept for their memory.
  struct Scratch {
    std::vector<decide::Metered> metered;
    std::vector<actuate::Boost> boosts;
    std::vector<ThreadId> over;  // threads without a boost from now on
    std::vector<Event> told;
    std::vector<decide::TimerFired> fired;
    std::vector<ThreadId> called;
  } scratch_;
};

}  // namespace swapd::daemon
