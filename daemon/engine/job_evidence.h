// Evidence of parallel jobs, as the watch for them (job_watch.h) gathers it: whether threads compete, which processes
// belong together, which threads yield; and when to look at what. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/look_credit.h"
#include "base/time.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

// Whether threads compete for CPUs: one look says little, because many that want a CPU want it for a moment. Pure.
class Contention {
 public:
  // runnable: threads that have or want a CPU.
  void look(int runnable, int cpus);
  [[nodiscard]] bool there() const { return found_; }
  // At a quarter of the last 32 looks at least: more than a thread that wakes now and then while the CPUs are taken.
  [[nodiscard]] bool often() const;
  [[nodiscard]] int cpus() const { return cpus_; }  // as of the last look
  // Threads that have or want a CPU, for each CPU; 1 at least.
  [[nodiscard]] double crowd() const { return crowd_; }

 private:
  static constexpr int begins_after = 2;  // of the last three looks
  static constexpr int ends_after = 40;   // looks in a row without
  static constexpr int often_after = 8;
  std::uint32_t last_ = 0;  // a bit a look
  int without_ = 0;
  bool found_ = false;
  double crowd_ = 1;
  int cpus_ = 1;
};

// Whether anything takes CPU time from the processes in which some thread matters or is helped, or was lately: where
// these alone have the CPUs, to help one is to hold up another. Pure.
class OthersShare {
 public:
  struct Seen {  // a managed thread
    pid_t tgid = 0;
    std::uint64_t samples = 0;
    bool matters = false;  // or is helped
  };
  // unmanaged: samples of other threads. of_all: as many as all CPUs can have in the window; more than 0.
  void end_window(std::span<const Seen> managed, std::uint64_t unmanaged, double of_all, Time now);
  // Also where nothing is known.
  [[nodiscard]] bool counts() const { return !part_ || *part_ >= least; }

 private:
  static constexpr double weight = 0.15, least = 0.02;
  static constexpr Duration lately = std::chrono::seconds(10);
  std::map<pid_t, Time> mattered_;  // last
  std::optional<double> part_;      // of the last windows, the last ones counting most
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
  [[nodiscard]] bool has_mates(pid_t pid) const;                                 // another process is of its job
  [[nodiscard]] bool shares(pid_t pid) const { return sharing_.contains(pid); }  // memory, with another process

 private:
  void join();
  // More than so many processes share it: it is a server's, of all its clients.
  static constexpr std::size_t max_sharers = 64;
  static constexpr std::uint64_t launchers = ~std::uint64_t{0};  // a place that stands for one, in place of a device
  std::map<pid_t, std::vector<Place>> places_;
  std::map<pid_t, pid_t> jobs_;
  std::set<pid_t> sharing_;
};

// Code of libraries in which the threads of a process wait for each other: that of MPI, of its
// transports, or of an OpenMP runtime. Such a library may look at so many places in turn that nothing else shows that
// it waits. Pure.
class WaitLibraries {
 public:
  // A part of the address space that is mapped from this file.
  struct Part {
    std::uint64_t begin = 0, end = 0;
  };
  [[nodiscard]] static bool is_one(std::string_view file);
  void set(pid_t pid, std::vector<Part> parts);
  void keep_only(const std::vector<pid_t>& pids);  // sorted
  // 0…1: of the places (0: none), in such a library.
  [[nodiscard]] double part(pid_t pid, std::span<const std::uint64_t> places) const;

 private:
  std::map<pid_t, std::vector<Part>> parts_;
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
  LookCredit credit_{rest_of_cost};  // of all processes together
};

// Threads for which a message may be what they wait for on their CPUs. The programs that tell of messages see each one
// of the machine, so one sample that shows a thread in a loop does not bring them: a server's threads pass through
// loops, too. Pure.
class BusyWaiters {
 public:
  // The thread's samples in the window, and those at which it waited on its CPU.
  void add(pid_t tid, std::uint64_t waits, std::uint64_t samples);
  void end_window();
  // As of its last samples.
  [[nodiscard]] bool waits(pid_t tid) const;

 private:
  static constexpr double kept = 0.8, least_samples = 8, least_part = 0.4, forgotten = 0.1;
  struct Last {
    double waits = 0, samples = 0;  // each window's count for 0.8 of the one's after it
  };
  std::map<pid_t, Last> threads_;
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

}  // namespace swapd::daemon
