// Finds parallel jobs: threads that wait for each other on their CPUs while some of them have none. What each busy
// thread did in a window (ThreadProfiled) comes in; what comes out are the jobs that lose CPU time so, with what their
// threads are due. Pure.
//
// A job is a process, or several that share memory or a launcher (the caller says which: ThreadProfiled::job). Its
// threads *wait on their CPUs* if they are seen in loops that wait (a PAUSE, registers that come back) or in
// sched_yield(2). That brings nothing while a mate has no CPU: `waste`, the part of its CPU time that the job used so,
// is what running together can save. A job that computes, or that blocks when it waits, wastes little and is left alone
// [DCS97 ch. 6].
//
// If its rivals are in other sessions, SCHED_IDLE between slots leaves them nothing: a session has its share of a
// CPU whatever class its threads have (sched(7), autogroup). So the job's session itself is lowered (`lowers_group`),
// if hardly any other thread of it takes CPU time. What its threads are due is found from what they would be due
// without that.
//
// A job that cannot have slots, because it has more threads than CPUs or because of the groups, and waits in loops for
// mates without a CPU takes *short turns* instead (quantum.h): a thread that waits has its CPU for microseconds
// then, and not for the kernel's slice.
//
// A process whose only busy thread waits on its CPU may have its mates on other machines, or where no launcher and no
// memory shows them: messages tell (`polls`, called()). While some come it is a job of one [DCS97 §3.1].
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_id.h"
#include "base/time.h"
#include "base/words.h"
#include "decide/coscheduling/quantum.h"
#include "decide/decider.h"

namespace swapd::decide {

struct JobFinderConfig {
  double busy = 0.01;   // of a CPU: a thread that used more in the window is one of the job's
  double yields = 0.5;  // … or was seen in sched_yield(2) that often
  double demand = 0.1;  // of the time: a thread that has or wants a CPU more rarely is none of its threads
  Duration never = std::chrono::milliseconds(250);  // a thread that blocks less often than that never blocks, and …
  double presumed = 0.3;     // … if it shares memory is presumed to wait for so much of its time
  double contended = 0.90;   // of what they could use: the job is due less
  double waste = 0.10;       // of the job's CPU time: less is not worth it
  double turns = 0.20;       // the same, as seen, for short turns, which cost more
  double turns_alone = 0.8;  // of its CPUs, that its threads are due together: others have hardly any of it
  Duration turn_cpus = std::chrono::seconds(1);  // that a thread of it was on, so long ago at most
  double polls = 0.3;  // of the times that it is seen, that a thread alone waits: messages may call it …
  Duration called_lately = std::chrono::seconds(1);  // … and have, so long ago at most
  double grouped_begin = 0.9, grouped_end = 0.75;    // its groups are due less of the CPUs: no slots begin, or they end
  double group_others = 0.1;  // of a CPU, that other threads of one of its groups have: with more none is lowered
  double only_jobs = 0.9;     // of a CPU, that threads which run in slots have had: no other thread wants it
  double quiet = 0.97;        // due more than this: no rival competes any more
  int windows = 2;            // in a row, to begin and to end
  Duration forget_after = std::chrono::seconds(3);  // without a word of a thread
  std::size_t max_jobs = 64, max_threads = 256;     // of a job
};

class JobFinder {
 public:
  using JobId = std::uint64_t;
  enum class State : std::uint8_t {
    alone,        // one busy thread, or no rival competes
    useful,       // it competes, and wastes little
    crowded,      // it has more busy threads than there are CPUs, or than may use CPUs of their own at once
    grouped,      // what it competes with is in other groups (sessions, control groups), among which no class counts
    round_robin,  // as the two before, and its threads take short turns
    wanted,       // its threads are to run together
  };
  struct Member {
    ThreadId thread;
    double share = 1;       // of its CPU, that it is due
    double seen_share = 1;  // … as the run queues have it, in which threads between slots weigh next to nothing: the
                            // median of the last windows, so that a thread that comes for a moment changes nothing
    std::array<double, 7> seen_shares{};  // the last ones in turn
    double cpu = 0;                       // of the window, that it had a CPU
    double waiting = 0;                   // of that, in loops that wait
    double spinning = 0;                  // the same, but only as seen, and without sched_yield(2)
    std::uint32_t weight = 0;             // that its nice value gives it
    std::uint64_t group = 0;              // its run queue's
    int cpu_number = 0;
    Time seen{};
    double polling = 0;         // 0…1: of the times that it was seen, in loops that wait
    Time called = never;        // by a message
    std::uint32_t windows = 0;  // that told a share
    double upper = 1;           // 0…1: what its groups were due of its CPU lately
    double group_part = 1;      // 0…1: of its CPU, that its group had or was due, as the share was last found with
    double group_others = 1;    // in CPUs: that other threads of its group had in the last window
    bool rivals = true;         // ThreadProfiled::rivals
    double raw_upper = 1;       // 0…1: what its groups were due of its CPU then, lowered or not
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.thread, self.share, self.seen_share, self.seen_shares, self.windows, self.upper, self.group_part,
              self.group_others, self.raw_upper, self.cpu, self.waiting, self.spinning, self.polling, self.called,
              self.weight, self.group, self.cpu_number, self.seen, self.rivals);
    }
  };
  struct Job {
    State verdict = State::alone;
    double waste = 0;               // 0…1
    double due = 1;                 // 0…1, of what its threads could use
    bool takes_turns = false;       // short ones
    int turned = 0;                 // windows in a row that say otherwise
    Quantum quantum{};              // their length
    std::map<int, Time> turn_cpus;  // CPUs that its threads were on, and when last
    int for_ = 0, against = 0;      // windows in a row
    bool fits = true;               // ThreadProfiled::fits, of the last one
    std::uint64_t room = 0;         // ThreadProfiled::room, of the last one
    bool declared = false;          // the policy says that it is a parallel job
    bool running = false;           // it runs in slots: its waste is not what it would be without
    bool polls = false;             // its only thread waits on its CPU, for messages as far as can be seen
    bool heard = false;             // the window that is coming in has a thread of it
    bool apart = false;             // rivals in other groups compete for good
    bool lowers_group = false;      // its groups are to take nothing from others while it runs in slots
    double group_others = 1;        // in CPUs: that other threads of its groups had lately, of the one where it is most
    int lowered_for = 0;            // windows in a row that began so
    int unmoved = 0;                // … in which its groups were due as much as before
    bool group_fixed = false;       // they cannot be lowered
    std::vector<Member> members;    // by thread
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.verdict, self.waste, self.due, self.for_, self.against, self.fits, self.room, self.declared,
              self.running, self.polls, self.apart, self.lowers_group, self.group_others, self.lowered_for,
              self.unmoved, self.group_fixed, self.members, self.takes_turns, self.turned, self.quantum,
              self.turn_cpus);
    }
  };

  explicit JobFinder(JobFinderConfig config = {}) : config_(config) {}

  // The window's threads, one after the other; then end_window().
  void add(const ThreadProfiled& seen, bool declared);
  void end_window(int cpus, Time now);
  // A message has come for the thread.
  void called(ThreadId thread, Time now);
  // Tells that the job runs in slots, or no more.
  void set_running(JobId id, bool running);
  void forget(ThreadId thread);
  // Nothing has been heard of any job for long.
  void end_turns();
  // The turns of all jobs.
  [[nodiscard]] ShortTurns short_turns() const;

  [[nodiscard]] const std::map<JobId, Job>& jobs() const { return jobs_; }

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.jobs_, self.fresh_);
  }

 private:
  void take_from_others(JobId job, ThreadId thread);
  [[nodiscard]] int other_lowered(JobId job, std::uint64_t group, int cpu) const;
  [[nodiscard]] double own_upper(JobId id, const Job& job, const ThreadProfiled& seen) const;
  void look_at_groups(JobId id, Job& job);
  void weigh(Job& job, int cpus, Time now) const;
  void look_at_turns(Job& job, Time now) const;
  void correct_shares();
  [[nodiscard]] bool only_jobs_use(int cpu) const;
  JobFinderConfig config_;
  std::map<JobId, Job> jobs_;
  bool fresh_ = false;
};

inline constexpr auto job_state_words = words<JobFinder::State>({{"alone", JobFinder::State::alone},
                                                                 {"useful", JobFinder::State::useful},
                                                                 {"crowded", JobFinder::State::crowded},
                                                                 {"other-groups", JobFinder::State::grouped},
                                                                 {"round-robin", JobFinder::State::round_robin},
                                                                 {"coscheduled", JobFinder::State::wanted}});

}  // namespace swapd::decide
