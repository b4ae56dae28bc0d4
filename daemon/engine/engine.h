// The engine thread: real-time, and the only one that uses model, deciders and actuator.
//
// Each round it merges by time what the observer, the worker, the process connector and the timers tell, feeds the
// model, reconciles, and goes back to sleep. It never logs: the control thread is told through a bounded queue
// (EventFeed), or gets a snapshot on request.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actuate/actuator.h"
#include "decide/coscheduling/coscheduling_decider.h"
#include "decide/donation/donation_decider.h"
#include "decide/levels/levels_decider.h"
#include "decide/memory/memory_decider.h"
#include "decide/shaping/auto_limit_decider.h"
#include "engine/call_listener.h"
#include "engine/competitor_watch.h"
#include "engine/decision_loop.h"
#include "engine/engine_thread.h"
#include "engine/event_feed.h"
#include "engine/job_watch.h"
#include "engine/membership.h"
#include "engine/observation.h"
#include "engine/shaped_threads.h"
#include "engine/snapshot.h"
#include "engine/worker.h"
#include "kernel.h"
#include "memory/memory_manager.h"
#include "model/managed_set.h"
#include "model/model.h"
#include "record/record_ring.h"
#include "shaping/shaper.h"
#include "sys/bpf/bpf_tracer.h"
#include "sys/sched/preempt_clock.h"

namespace swapd::daemon {

// The deciders that the decision loop owns.
struct Deciders {
  const decide::DonationDecider* donation = nullptr;
  const decide::AutoLimitDecider* auto_limits = nullptr;
  const decide::CoschedulingDecider* coscheduling = nullptr;
  const decide::LevelsDecider* levels = nullptr;
  const decide::MemoryDecider* memory = nullptr;
};

class Engine {
 public:
  struct Options {
    model::Settings model;
    decide::DonationConfig donation;
    decide::CoschedulingConfig coscheduling;
    decide::LevelsConfig levels;
    decide::MemoryConfig memory;
    MemoryManager::Config memory_manager;
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
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Recovers the journal and starts the thread. Warnings (missing privileges) are appended.
  [[nodiscard]] Status start(std::vector<std::string>& warnings);
  // Gives everything back and ends the thread.
  void stop();

  // Runs on the engine thread and waits for it; for commands and snapshots. False where the engine has stopped.
  bool call(std::function<void(Engine&)> command);

  // --- on the engine thread, through call() ---
  // The managed set, and the commands that change it. Its signal() is for the control thread.
  [[nodiscard]] Membership& membership() { return membership_; }
  // Brings the managed set up to date: a child that is born by now is managed as its parent is.
  void catch_up();
  // For the next swapd, and of the last one.
  [[nodiscard]] std::vector<model::SavedConfidence> learnt(std::size_t most) const { return model_.learnt(most); }
  void restore_confidences(const std::vector<model::SavedConfidence>& lessons) { model_.restore_confidences(lessons); }
  void pause(bool paused);
  [[nodiscard]] Snapshot snapshot();
  [[nodiscard]] Counters counters();
  // For the deciders; what follows is applied before the engine sleeps again.
  void tell(const decide::Input& input) { decisions_.tell(input); }
  [[nodiscard]] const decide::AutoLimitDecider& auto_limits() const { return *deciders_.auto_limits; }
  // A snapshot goes into the ring, and what follows after it.
  void record_from_here();
  [[nodiscard]] const model::ManagedSet& members() const { return members_; }

  // --- from the control thread ---
  // Whether processes are observed through a filter, which must be installed in them.
  [[nodiscard]] bool needs_listeners() const { return observation_.needs_listeners(); }
  [[nodiscard]] EventFeed& feed() { return feed_; }
  [[nodiscard]] RecordRing& records() { return records_; }  // signals feed().fd()
  [[nodiscard]] int wake_fd() const { return thread_.wake_fd(); }

 private:
  void run();
  [[nodiscard]] Time deadline() const;
  [[nodiscard]] Time let_records_gather(Time now);
  void round(Time now);
  void take_what_happened(Time now);
  void take(std::span<const Event> events);
  void take_answers(Time now);
  void tick(Time now);
  void keep_to_budget(Time now);
  [[nodiscard]] bool idle() const;

  Kernel kernel_;
  Options options_;
  EngineThread thread_;
  model::ManagedSet members_;
  model::Model model_;
  actuate::Actuator actuator_;
  struct Background {  // threads that look things up
    Worker worker;
    JobWatch jobs;
    CallListener calls;
    MemoryManager memory;
    sys::PreemptClock preempt_clock{};
    std::pair<std::uint64_t, std::size_t> they_know{};  // of the managed set: its changes, its threads
    OthersShare others{};
    void tell_processes(const model::ManagedSet& members, bool coscheduling);  // which ones are managed
  } background_;
  EventFeed feed_;
  RecordRing records_{feed_.fd()};
  Observation observation_;
  Deciders deciders_;
  DecisionLoop decisions_;
  Membership membership_;
  CompetitorWatch competitors_;
  ShapedThreads shaped_;
};

}  // namespace swapd::daemon
