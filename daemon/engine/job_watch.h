// Watches for parallel jobs on a thread of its own, because it reads procfs and opens perf events, which may take long.
//
// It sleeps while fewer than two managed threads may be coscheduled. Else it looks twenty times a second at how many
// threads of the machine want a CPU (proc(5), loadavg); while those are no more than there are CPUs, no thread competes
// and there is nothing to do. When they are, it samples the CPUs (sys/bpf/cpu_profile.h), and tells each window which
// threads had one, what for, what share is due to them, and which processes share memory or a launcher. It stops when
// no thread has competed for a while.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "engine/cpu_room.h"
#include "kernel.h"
#include "sys/bpf/cpu_profile.h"
#include "sys/process/pi_mutex.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

// Whether threads compete for CPUs: one look says little, because many that want a CPU want it for a moment. Pure.
class Contention {
 public:
  // runnable: threads that have or want a CPU.
  void look(int runnable, int cpus);
  [[nodiscard]] bool there() const { return found_; }
  // Threads that have or want a CPU, for each CPU; 1 at least.
  [[nodiscard]] double crowd() const { return crowd_; }

 private:
  static constexpr int begins_after = 2;  // of the last three looks
  static constexpr int ends_after = 40;   // looks in a row without
  unsigned last_ = 0;                     // a bit a look
  int without_ = 0;
  bool found_ = false;
  double crowd_ = 1;
};

// When to sample: all the time while some thread may be waiting on its CPU, else a third of it, because on a machine of
// many threads the samples of each window are many. Pure.
class SamplingTurns {
 public:
  // A window is over. fruitful: some thread in it may be one of a job.
  void end_window(bool fruitful, Time now);
  // A program has begun, which may be a job: a rest ends after a second.
  void program_begins() { rests_until_ -= std::exchange(rest_after_begin_, {}); }
  [[nodiscard]] bool on(Time now) const { return now >= rests_until_; }

 private:
  static constexpr int max_fruitless = 16;  // windows in a row
  static constexpr Duration rest = std::chrono::seconds(4), shortest_rest = std::chrono::seconds(1);
  int fruitless_ = 0;
  Time rests_until_{};
  Duration rest_after_begin_{};  // by which the rest is shorter once a program begins
};

// Sets of processes that share memory which one of them at least can write, or were started by one launcher: the lowest
// pid stands for the set. Pure.
class MemorySharers {
 public:
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // device and inode
  // launcher: its pid; 0: none. True: the process had others before, or was not known.
  bool set(pid_t pid, std::vector<Place> writable, pid_t launcher = 0);
  void keep_only(const std::vector<pid_t>& pids);  // sorted
  [[nodiscard]] pid_t job_of(pid_t pid) const;
  [[nodiscard]] bool shares(pid_t pid) const;  // memory, or the launcher, with another process

 private:
  void join();
  // More than so many processes share it: it is a server's, of all its clients.
  static constexpr std::size_t max_sharers = 64;
  static constexpr std::uint64_t launchers = ~std::uint64_t{0};  // a place that stands for one, in place of a device
  std::map<pid_t, std::vector<Place>> places_;
  std::map<pid_t, pid_t> jobs_;
};

// When the mappings of a process are read: soon again in its first seconds, in which a program maps what it shares with
// others as it comes to it, and so rarely that it takes a hundredth of a CPU at most. Pure.
class MappingLooks {
 public:
  [[nodiscard]] bool due(pid_t pid, Time now) const;
  // They were read, which took so long. changed: they were others before.
  void looked(pid_t pid, bool changed, Duration took, Time now);
  void keep_only(const std::vector<pid_t>& pids);  // sorted

 private:
  static constexpr Duration least = std::chrono::milliseconds(250), most = std::chrono::seconds(5);
  static constexpr Duration starts = std::chrono::seconds(20);  // then changes bring no look soon after any more
  static constexpr int rest_of_cost = 100;                      // times as long as the look took
  struct Look {
    Time first{}, next{};
    Duration pause{};
  };
  std::map<pid_t, Look> looks_;
};

// Threads that give their CPU away all the time (sched_yield(2)) and want it again at once. Beside busy loops they are
// left so little of it that no sample meets them; but they have many turns on a CPU, none of which lasts, and wait in
// between. Pure.
class Yielders {
 public:
  // Takes what the thread has used and waited for so far. True: it yields, as of the time since the last look at it.
  bool look(pid_t tid, const sys::Procfs::SchedStat& now, Time at);
  [[nodiscard]] Duration used(pid_t tid) const;  // between the last two looks
  // How long ago the last round began; nothing: less than `pause`. Else a round begins.
  [[nodiscard]] std::optional<Duration> begin_round(Time now, Duration pause);
  void end_round();  // forgets those that were not looked at

 private:
  static constexpr double waits = 0.5;                                      // of the time, and …
  static constexpr Duration longest_turn = std::chrono::microseconds(200);  // on average
  static constexpr std::uint64_t least_turns = 5;
  struct Before {
    sys::Procfs::SchedStat stat;
    Time at{};
    Duration used{};
    std::uint64_t round = 0;
  };
  std::map<pid_t, Before> threads_;
  std::uint64_t round_ = 0;
  Time begun_{};
};

struct ProfileWindow {
  Time begun{}, ended{};
  struct Thread {
    sys::CpuProfile::Thread seen;
    std::uint64_t job = 0;
    bool shares_memory = false;
    bool fits = true;        // the threads of its job can all have CPUs at once
    std::uint64_t room = 0;  // CpuRoom::room()
    bool yields = false;     // it was found by that, and not by samples
    double group_use = 1;    // 0…1: of its CPU, that the threads of its group had together
  };
  std::vector<Thread> threads;
};

class JobWatch {
 public:
  struct Config {
    Duration look = std::chrono::milliseconds(100);            // between two looks at the load
    Duration first_look = std::chrono::milliseconds(50);       // … while no thread competes
    Duration window = std::chrono::milliseconds(125);          // of a profile
    Duration first_window = std::chrono::milliseconds(60);     // of the first ones once threads compete
    Duration period = std::chrono::milliseconds(5);            // between two samples of a CPU
    Duration yielders_again = std::chrono::milliseconds(500);  // between two looks for them
  };
  // notify: there is a window to take; called from the thread.
  JobWatch(const Kernel& kernel, std::function<void()> notify);
  JobWatch(const Kernel& kernel, std::function<void()> notify, Config config);
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  // Before the engine's thread begins, whose class it would have.
  // wanted: the policy has something coscheduled, so the profile is opened at once.
  void start(bool wanted);
  void stop();
  // pids: the processes whose threads are told of, sorted. enough: they have two threads at least; else it sleeps.
  void set_processes(std::vector<pid_t> pids, bool enough);
  // coscheduled: some job is, and what its threads are due must be known all the time.
  [[nodiscard]] std::vector<ProfileWindow> take(bool coscheduled);
  [[nodiscard]] Duration cpu_time() const;  // of its thread
  // The part of it that loading programs into the kernel has taken, which happens once.
  [[nodiscard]] Duration loading_time() const;
  // Why the CPUs cannot be sampled; empty: they can, as far as is known.
  [[nodiscard]] std::string trouble() const;

 private:
  void run(bool wanted);
  [[nodiscard]] bool wait(Duration time);  // false: it is to end
  [[nodiscard]] std::vector<pid_t> processes() const;
  [[nodiscard]] std::optional<int> runnable() const;
  void open_profile();
  [[nodiscard]] bool samples() const { return profile_ && profile_->running(); }
  void follow_contention();
  void tell_window(Time begun);
  void add_yielders(const std::vector<pid_t>& managed, ProfileWindow& window);
  void look_at_room(ProfileWindow& window);
  void read_mappings(const std::vector<pid_t>& pids, Time now);

  Kernel kernel_;
  std::function<void()> notify_;
  const Config config_;
  Fd changed_;  // an eventfd
  mutable sys::PiMutex mutex_;
  struct Shared {
    std::vector<pid_t> pids;
    bool enough = false, stops = false, coscheduled = false;
    pid_t tid = 0;                        // its own, once it runs
    Duration loaded{};                    // CPU time that loading has taken
    std::optional<Duration> loads_since;  // it loads now: the thread's CPU time when that began
    std::vector<ProfileWindow> windows;
    std::string trouble;
  } shared_;  // under the mutex
  // State of the thread.
  Contention contention_;
  MemorySharers sharers_;
  CpuRoom room_;
  Yielders yielders_;
  SamplingTurns turns_;
  MappingLooks mapping_looks_;
  std::unique_ptr<sys::CpuProfile> profile_;
  std::thread thread_;
};

}  // namespace swapd::daemon
