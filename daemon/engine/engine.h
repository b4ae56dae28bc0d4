// The engine thread: real-time, the only owner of model, decider and actuator (docs/design.md, Threads).
//
// It merges what the observer, the worker, the process connector and the timers tell by time, feeds the model,
// reconciles, and goes back to sleep. It never logs: what others shall know goes out as notes through a bounded ring,
// or as a snapshot on request.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actuate/actuator.h"
#include "base/asked_priority.h"
#include "base/fd.h"
#include "base/rate_limiter.h"
#include "base/token_bucket.h"
#include "decide/donation/donation_decider.h"
#include "engine/decision_loop.h"
#include "engine/engine_affinity.h"
#include "engine/note_queue.h"
#include "engine/snapshot.h"
#include "engine/worker.h"
#include "model/managed_set.h"
#include "model/model.h"
#include "observe/seccomp/receiver.h"
#include "observe/seccomp/seccomp_observer.h"
#include "record/record_ring.h"
#include "shaping/shaper.h"
#include "sys/bpf/bpf_tracer.h"
#include "sys/netlink/proc_events.h"
#include "sys/process/pi_mutex.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::daemon {

class Engine {
 public:
  struct Options {
    model::Settings model;
    decide::DonationConfig donation;
    DecisionLoop::Config decisions;
    observe::SeccompObserver::Settings observe;
    actuate::Actuator::Options actuate;
    int priority = 93;  // SCHED_FIFO of the engine thread; receivers that follow a member get one more
    Duration tick = std::chrono::milliseconds(10);
    Duration resting_tick = std::chrono::milliseconds(100);  // while nobody important waits and nothing is lent
    // Of one user, root excepted; 0: no limit.
    std::size_t max_processes = 0;
    std::size_t max_threads = 0;
    // The names of the classes 1, 2 …, in the order in which `model`, `donation` and `actuate` have them.
    std::vector<std::string> classes;
  };
  // tracer: observe with it; null: with seccomp.
  // shaper: is told who is in which class, and who is favoured.
  Engine(const sys::Procfs& procfs, const sys::Scheduler& scheduler, const sys::Groups& groups,
         observe::Resolver& resolver, const Clock& clock, Options options, std::unique_ptr<sys::BpfTracer> tracer,
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
  // io: its filter traps I/O calls, too.
  void add_listener(std::shared_ptr<observe::Receiver> receiver, pid_t pid, const std::string& class_name, bool io,
                    Time now);
  // Of an earlier swapd: its members come with reenroll().
  void adopt_listener(std::shared_ptr<observe::Receiver> receiver, pid_t launch);
  void remove_listener(const observe::Receiver* receiver);
  // Whether programs are taken in without a filter.
  [[nodiscard]] bool needs_listeners() const { return seccomp_ != nullptr; }
  // Whether the process is under a filter of ours, and whether that traps I/O calls.
  [[nodiscard]] bool has_listener(pid_t tgid) const { return listener_of_.contains(tgid); }
  [[nodiscard]] bool has_io(pid_t tgid) const;
  // Takes these threads of running processes in: how many were not there yet. ENOSPC: not all can be observed.
  [[nodiscard]] Result<std::size_t> enroll_threads(const std::vector<RosterAnswer::Entry>& threads,
                                                   const std::string& class_name);
  // Whether the user may have one more managed thread, and with it a process.
  [[nodiscard]] bool has_room(std::uint32_t uid, bool process) const;
  // The same for another user's process, with what to tell him: EDQUOT.
  [[nodiscard]] Status room_for(std::uint32_t uid, pid_t process) const;
  // What has happened by now is taken in: who was born belongs to whom it was born to.
  void catch_up();
  // All of one class into another.
  void move_class(const std::string& from, const std::string& to);
  // For the next swapd.
  [[nodiscard]] std::vector<model::Membership> memberships() const;
  // A member of an earlier swapd that is still the same, and what it has started since. ENOENT: with seccomp, where its
  // listener was not adopted.
  [[nodiscard]] Result<std::size_t> reenroll(const std::vector<RosterAnswer::Entry>& threads,
                                             const model::Membership& as);
  // For the next swapd, and of the last one.
  [[nodiscard]] std::vector<model::SavedConfidence> learnt(std::size_t most) const { return model_.learnt(most); }
  void restore_confidences(const std::vector<model::SavedConfidence>& lessons) { model_.restore_confidences(lessons); }
  // Reuses the listener of the tree that the process is in; ENOENT: it is in none.
  [[nodiscard]] Status manage_again(pid_t pid, const std::string& class_name);
  [[nodiscard]] Status release(pid_t pid);
  // Of an earlier swapd, where nothing else is left of it (bpf).
  void remember_released(pid_t pid, std::uint64_t start_time);
  // Managed, or released.
  [[nodiscard]] bool knows(pid_t pid, std::uint64_t start_time) const;
  // may_raise: above what they have of their own; else EACCES, and nothing is changed.
  [[nodiscard]] Status set_base(pid_t pid, const AskedPriority& asked, bool may_raise);
  void pause(bool paused);
  [[nodiscard]] Snapshot snapshot() const;
  [[nodiscard]] Counters counters() const;
  // A snapshot goes into the ring, and what follows after it.
  void record_from_here();
  [[nodiscard]] const model::ManagedSet& members() const { return members_; }

  // --- from the control thread ---
  void want_notes(Notes detail) { notes_wanted_.store(detail, std::memory_order_relaxed); }
  // Of donations, sparingly, for the log.
  void want_journal(bool wanted) { journal_wanted_.store(wanted, std::memory_order_relaxed); }
  [[nodiscard]] int notes_fd() const { return notes_fd_.get(); }
  [[nodiscard]] std::vector<Note> take_notes();
  [[nodiscard]] RecordRing& records() { return records_; }  // rings notes_fd()
  [[nodiscard]] double worker_cpu_seconds() const { return worker_.cpu_seconds(); }
  [[nodiscard]] int wake_fd() const { return wake_fd_.get(); }
  // Readable once processes have come or gone, or changed their class, since membership_seen().
  [[nodiscard]] int membership_fd() const { return membership_fd_.get(); }
  void membership_seen();

 private:
  void run();
  void take_what_happened(Time now);
  void drain_all(Time now);
  void set_receivers_urgent(bool wanted);
  void take(const Event& event);
  void take_answers(Time now);
  void take_proc_events(Time now);
  void happened(const sys::ProcEvent& event, Time now);
  void request_rescan(std::uint64_t lost, Time now);
  void on_tracing_changed(const Status& status);
  void take_roster(const RosterAnswer& answer, Time now);
  void tick(Time now);
  void poll_held_threads(Time now);
  [[nodiscard]] bool would_run(const Blocked& blocked) const;
  [[nodiscard]] bool lends_to_kernel_threads() const {
    const model::Settings& settings = model_.settings();
    for (std::size_t id = 0; id <= settings.classes.size(); ++id)
      if (settings.of(static_cast<ClassId>(id), ResourceKind::kernel_work).counts) return true;
    return false;
  }
  void enroll_kernel_threads(const Blocked& blocked);
  void nap(Time& now, Duration least);
  void pace(Time now);
  [[nodiscard]] bool rests() const;
  void follow_members();
  void keep_off_members(Time now);
  // EDQUOT: the user has as many as it may have, and no member it is. Another error is the observer's: a member it is,
  // but one whose waits are not seen.
  [[nodiscard]] bool raises(const AskedPriority& asked, pid_t tid, const SchedAttr& own) const;
  [[nodiscard]] Status set_base(const model::ManagedThread& member, const AskedPriority& asked, const SchedAttr& base);
  Status enroll(ThreadId id, pid_t tgid, const SchedAttr& base, std::uint32_t uid, Time now);
  void reject(pid_t tgid);
  void child(const sys::ProcEvent& fork, Time now);
  [[nodiscard]] const model::ManagedProcess* family_of(pid_t tgid) const;
  void remember_family(pid_t tgid, const model::ManagedProcess& parent, pid_t parent_tgid);
  void exited(pid_t tid, Time now);
  void execed(const sys::ProcEvent& exec, Time now);
  std::optional<observe::Member> identify(pid_t tid);
  void check_waiting_priorities(Time now);
  void note(Note note);
  void note_event(const Event& event);
  void note_outcome(const actuate::Outcome& outcome);
  void note_inversions();
  [[nodiscard]] bool noted(Notes detail) const { return notes_wanted_.load(std::memory_order_relaxed) >= detail; }

  const sys::Procfs& procfs_;
  const sys::Scheduler& scheduler_;
  observe::Resolver& resolver_;
  const Clock& clock_;
  Options options_;
  Shaper& shaper_;
  Fd epoll_;
  Fd wake_fd_;   // commands, answers, urgent receivers
  Fd notes_fd_;  // notes are there for the control thread
  Fd membership_fd_;
  std::atomic<bool> membership_told_{false};
  model::ManagedSet members_;
  model::Model model_;
  actuate::Actuator actuator_;
  Worker worker_;
  std::unique_ptr<observe::Observer> observer_;
  observe::SeccompObserver* seccomp_ = nullptr;  // the same, if it is one
  RecordRing records_{notes_fd_.get()};
  NoteQueue notes_{notes_fd_.get()};
  const decide::DonationDecider* donation_ = nullptr;  // one of the deciders
  std::unique_ptr<DecisionLoop> decisions_;
  std::unique_ptr<sys::ProcEvents> proc_events_;
  std::vector<std::shared_ptr<observe::Receiver>> receivers_;
  struct Follow {
    int cpu = -1;
    pid_t lead = 0;
    std::uint64_t received = 0;
    unsigned settled = 0;  // looks on end that found it where it was …
    unsigned rest = 0;     // … and ticks before the next one
  };
  std::unordered_map<const observe::Receiver*, Follow> following_;
  std::unordered_map<pid_t, const observe::Receiver*> listener_of_;  // by tgid
  std::unordered_map<pid_t, model::ManagedProcess> ended_unseen_;    // by tgid: only whose children they were
  std::unordered_map<const observe::Receiver*, pid_t> launch_of_;
  std::unordered_set<const observe::Receiver*> io_receivers_;
  std::unordered_map<pid_t, Time> held_before_;        // by the limits of their class, as of the last tick
  std::unordered_map<pid_t, std::uint64_t> released_;  // start times; with bpf nothing else is left of them

  sys::PiMutex mutex_;  // guards commands_; held for a few moves only
  std::vector<std::function<void()>> commands_;
  bool stopped_ = false;
  std::atomic<Notes> notes_wanted_{Notes::none};
  std::atomic<bool> journal_wanted_{false};
  RateLimiter journalled_;
  RateLimiter followed_{std::chrono::seconds(1)};  // of inversions and limits
  using Pair = std::pair<ThreadId, ThreadId>;
  struct HashPair {
    std::size_t operator()(const Pair& pair) const {
      return std::hash<ThreadId>()(pair.first) ^ (std::hash<ThreadId>()(pair.second) * 3);
    }
  };
  std::unordered_set<Pair, HashPair> helped_;  // requesters, and who was found for each last
  bool whole_process_ = false;                 // the event that is taken is its process's, too
  TokenBucket journal_room_{2, 20, Time{}};    // lines a second, and at once, however many pairs there are
  std::atomic<std::uint64_t> lost_{0};
  std::uint64_t over_quota_ = 0;
  std::string trouble_;                   // what the observer cannot do at present; empty: nothing
  std::uint64_t notifications_gone_ = 0;  // of receivers that have ended
  std::vector<Event> events_;
  std::optional<EngineAffinity> placement_;  // none: the own affinity cannot be read
  Time next_tick_{};
  Duration nap_{};
  Duration cpu_used_{};  // at the last tick …
  Time paced_{};         // … which was then
  Time next_roster_{};
  Time next_competitors_{};
  Time competitors_seen_{};
  bool rescan_ = false;  // process events were lost: the next roster looks for descendants too
  bool urgent_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace swapd::daemon
