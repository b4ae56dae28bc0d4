// The slots of jobs that run as gangs: in its slot all of a job's threads have their CPUs, in between none wants one.
// Slots are short and begin when the job is owed CPU time [DCS97 §3.2], so that each job has its fair share in the
// length of some slots. Jobs that cannot all have CPUs at once have theirs in turn, the one that is owed most first.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/thread_id.h"
#include "base/time.h"
#include "decide/coscheduling/cpu_ledger.h"
#include "decide/decider.h"

namespace swapd::decide {

struct GangConfig {
  // Long against the 50 us in which all threads of a job get their CPUs; short for who waits meanwhile.
  Duration slot = std::chrono::milliseconds(8);
  Duration slot_among_gangs = std::chrono::milliseconds(16);  // where only gangs compete
  Duration look_again = std::chrono::milliseconds(20);        // while no thread of the job can run
  // Between two slots where only gangs compete. The one that had the CPUs goes on, as SCHED_IDLE, and any other thread
  // that wants one for a moment gets it at once. If real-time threads had a CPU all the time, such threads would
  // starve, and the kernel would give ordinary ones a twentieth of it at moments of its own, on each CPU at another one
  // (the fair server, sched(7)): a job that lacks one CPU waits on all.
  Duration pause = std::chrono::milliseconds(1);
};

class Gangs {
 public:
  using JobId = std::uint64_t;
  struct Gang {
    CpuLedger ledger;
    std::vector<ThreadId> threads;   // sorted
    std::vector<int> cpus;           // that they were on, sorted
    std::uint64_t room = 0;          // the same for gangs that cannot have slots at once; 0: not known, `cpus` tell
    std::optional<Time> slot_until;  // it has its slot
    Time look_at{};                  // its threads' CPU time is to be measured then
    bool rests = true;               // none of its threads can run: they are as they are
    bool by_messages = false;        // its slots begin when a message calls, if it may have one then
    bool called = false;             // … which one has
    bool called_now = false;         // … a moment ago, so that its sender has a CPU
    bool heard = false;              // one has come since its last slot
    bool in_vain = false;            // in which none came
    bool over = false;               // a slot is over, and not settled
    Time ended{};                    // when that was
    Duration credit_after{};         // its credit when its last slot was over
    std::uint64_t slots = 0;         // that have begun
    struct Refused {
      std::uint64_t busy = 0;  // times that another job had the CPUs
      std::uint64_t debt = 0;  // messages that called it while too little was owed
      template <typename Self, typename Archive>
      static void state(Self& self, Archive& archive) {
        archive(self.busy, self.debt);
      }
    } refused{};
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.ledger, self.threads, self.cpus, self.room, self.slot_until, self.look_at, self.rests, self.slots,
              self.refused, self.by_messages, self.called, self.called_now, self.heard, self.in_vain, self.over,
              self.credit_after, self.ended);
    }
  };

  explicit Gangs(GangConfig config = {}) : config_(config) {}

  // The job's threads from now on, with what each is due.
  struct Thread {
    ThreadId thread;
    double share = 1;
    int cpu = 0;
  };
  void set(JobId id, const std::vector<Thread>& threads, Time now, std::uint64_t room = 0);
  // Messages call the job [DCS97 §3.2, §4.2.1]. One that comes begins a slot even in debt, because its sender has a CPU
  // now; one that waits does once less than half a slot is owed, and without a message a slot begins when a whole one
  // is due to the job.
  void set_by_messages(JobId id, bool on) { gangs_.at(id).by_messages = on; }
  // A message has come for the thread: end_slots() and begin_slots() follow. It is remembered until the next slot.
  void call(const MessageCalled& message);
  // The gangs' threads that a message may call.
  [[nodiscard]] std::vector<ThreadId> callable() const;
  void remove(JobId id) { gangs_.erase(id); }
  // A job without threads ends. True: the thread was in one.
  bool forget(ThreadId thread);
  // CPU time of a thread; see CpuLedger::settle().
  void settle(ThreadId thread, Duration cpu, bool runnable, Time now);

  // Ends the slots that are over. Their threads are to be measured next, as are those of jobs that may be owed a slot:
  // `measure` gets them. False: none.
  bool end_slots(Time now, std::vector<ThreadId>& measure);
  // Once they are settled: begins the slots that are due. True: what is to be demanded has changed.
  bool begin_slots(Time now);
  // When end_slots() must be called at the latest; none: there is no gang.
  [[nodiscard]] std::optional<Time> next() const;

  [[nodiscard]] const std::map<JobId, Gang>& all() const { return gangs_; }

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.gangs_);
  }

 private:
  [[nodiscard]] Duration cost(const Gang& gang) const;
  [[nodiscard]] Duration wanted(const Gang& gang) const;
  // Known of both, or it is not known.
  [[nodiscard]] static std::optional<bool> in_one_room(const Gang& one, const Gang& other);
  [[nodiscard]] static bool share_cpus(const Gang& one, const Gang& other);
  [[nodiscard]] bool may_begin(const Gang& gang) const;
  [[nodiscard]] bool on_its_cpus(const Gang& gang, const Gang& other) const;
  [[nodiscard]] bool only_gangs_compete(const Gang& gang) const;
  [[nodiscard]] Time pause_until(const Gang& gang) const;
  GangConfig config_;
  std::map<JobId, Gang> gangs_;
};

}  // namespace swapd::decide
