// The worker thread: everything that scans procfs or asks sock_diag (docs/design.md, Threads). Questions come from the
// engine, answers go back as values with the generation or time of the question; the engine drops stale ones.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <semaphore>
#include <set>
#include <thread>
#include <variant>
#include <vector>

#include "actuate/actuator.h"
#include "actuate/competitors.h"
#include "engine/group_weights.h"
#include "engine/questions.h"
#include "kernel.h"
#include "observe/observer.h"
#include "observe/resolve/resolver.h"
#include "sys/process/pi_mutex.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::daemon {

// Asks for the threads of these processes (and of their descendants), with their attributes.
struct RosterQuestion {
  std::vector<pid_t> members;
  bool descendants = false;
};
struct RosterAnswer {
  struct Entry {
    ThreadId id;
    pid_t tgid = 0;
    pid_t parent = 0;  // the member it descends from; 0: it is one itself
    std::uint32_t uid = 0;
    SchedAttr attr;
    std::uint64_t process_start = 0;
  };
  std::vector<Entry> threads;
  RosterQuestion question;
};

// Reads procfs: not for the engine thread.
[[nodiscard]] RosterAnswer list_threads(const sys::Procfs& procfs, const sys::Scheduler& scheduler,
                                        const RosterQuestion& question);

// Whose groups want a CPU or a disk now, the boosted threads left out?
struct CompetitorsQuestion {
  std::set<pid_t> boosted;
};

using Question = std::variant<observe::WaitQuestion, observe::AccessQuestion, ScanQuestion, RosterQuestion,
                              CompetitorsQuestion, WeightsQuestion>;
using Answer = std::variant<observe::WaitAnswer, observe::AccessAnswer, ScanAnswer, RosterAnswer, actuate::Competitors,
                            WeightsAnswer>;

class Worker final : public Questions {
 public:
  // notify: called from the worker's thread when there are answers again.
  Worker(const Kernel& kernel, std::vector<actuate::DiskGroups> disk_groups, observe::Resolver& resolver,
         std::function<void()> notify);
  ~Worker() override;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start();
  void stop();
  // Bounded: with too many questions open the oldest of the same kind is dropped. A question about a thread's wait
  // takes the place of an open one about an earlier wait of that thread, which is over.
  void ask(Question question);
  void ask(ScanQuestion question) override { ask(Question(std::move(question))); }
  [[nodiscard]] bool rested(Time now) const override;
  // One look at all descriptors serves all scans that are asked for at one moment.
  [[nodiscard]] bool rested_from_scans(Time now) const override;
  [[nodiscard]] std::vector<Answer> take();
  // That its thread has used; zero where that has not begun.
  [[nodiscard]] Duration cpu_time() const;

 private:
  void run();
  void rest_from_scans(Duration used);
  [[nodiscard]] bool replaces_older(const Question& question);
  [[nodiscard]] Answer answer(const Question& question);

  Kernel kernel_;
  observe::Resolver& resolver_;
  actuate::CompetitorScan competitors_;
  std::function<void()> notify_;
  sys::PiMutex mutex_;
  std::counting_semaphore<> wake_{0};  // a post never blocks
  std::deque<Question> questions_;
  std::atomic<Time> rested_at_{Time{}};  // max: there is something to do
  std::atomic<Time> rested_from_scans_at_{Time{}};
  std::atomic<int> scans_again_{0};  // that are open
  std::vector<Answer> answers_;
  bool stopping_ = false;
  std::atomic<pid_t> tid_{0};
  std::thread thread_;
};

}  // namespace swapd::daemon
