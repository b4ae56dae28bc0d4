// Groups (sessions, cpu cgroups) that a parallel job has for itself, and what such a group weighs of its own: a job
// whose rivals are in other groups can run in slots if one of its own is lowered meanwhile, and if no other program
// loses by that.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/groups.h"

namespace swapd::daemon {

// The CPU time of groups by jobs, as samples of the last windows have it; one window has too few of them. Pure.
class GroupUse {
 public:
  // A window is over: what was counted so far matters less.
  void fade();
  // A thread had a CPU at so many samples. job: 0: it is of no job. groups: its own one first, then those above.
  void add(std::uint64_t job, const std::vector<std::string>& groups, std::uint64_t samples);
  // The groups are not to be lowered, whatever is counted, until fade().
  void keep(const std::vector<std::string>& groups) { kept_.insert(groups.begin(), groups.end()); }
  // So many of the groups, from the first one upwards, are the job's: it had nearly all of their CPU time.
  [[nodiscard]] int owned(std::uint64_t job, const std::vector<std::string>& groups) const;

 private:
  static constexpr double nearly_all = 0.95;
  static constexpr double kept_of_a_window = 0.8;
  struct Use {
    double all = 0;
    std::map<std::uint64_t, double> by_job;
  };
  std::map<std::string, Use> groups_;
  std::set<std::string> kept_;
};

// Threads that want a CPU. In a group that is lowered they have next to nothing of it, so that samples hardly meet
// them; but they wait nearly all the time, which the kernel adds up when they have a CPU again. Pure.
class Wanting {
 public:
  // A sample has met the thread: it is to be looked at for a while.
  void met(pid_t tid, Time at) { threads_[tid].met = at; }
  // now: the time that it has used and waited for in all. True: it wants a CPU for a fifth of the time at least, as of
  // the last second.
  bool look(pid_t tid, const sys::Procfs::SchedStat& now, Time at);
  void forget_old(Time now);
  [[nodiscard]] std::vector<pid_t> threads() const;

 private:
  static constexpr double busy = 0.2;
  static constexpr Duration least = std::chrono::milliseconds(200);  // in which what it wants is measured
  static constexpr Duration most = std::chrono::seconds(1);
  static constexpr Duration kept = std::chrono::seconds(5);  // since it was met
  struct Known {
    Time met{}, since{};
    std::optional<Duration> wanted;  // at `since`
  };
  std::map<pid_t, Known> threads_;
};

// The weight of a thread's group on its CPU while it is not lowered, as a mean of the last windows. Pure.
class OwnWeights {
 public:
  // seen: in the window; 0: unknown. What is seen while the group is lowered, and shortly after, does not count.
  void add(pid_t tid, std::uint32_t seen, bool lowered, Time now);
  [[nodiscard]] std::uint32_t of(pid_t tid) const;  // 0: unknown
  void forget_old(Time now);

 private:
  static constexpr double lately = 0.25;  // of a window, in the mean
  static constexpr int settling = 3;      // windows after which a group that was lowered is itself again
  static constexpr Duration kept = std::chrono::seconds(5);
  struct Known {
    double weight = 0;
    int not_yet = 0;  // windows
    Time seen{};
  };
  std::map<pid_t, Known> threads_;
};

// Looks in procfs. Of the thread that watches jobs.
class JobGroups {
 public:
  JobGroups(const sys::Procfs& procfs, const sys::Groups& groups) : procfs_(procfs), groups_(groups) {}

  // The threads that had a CPU in a window.
  struct Seen {
    pid_t tid = 0;
    std::uint64_t job = 0;  // 0: it is not managed
    std::uint64_t samples = 0;
  };
  void look(std::span<const Seen> window, Time now);
  // After look(): so many groups of the thread are its job's alone.
  [[nodiscard]] int owned(pid_t tid, std::uint64_t job) const;
  [[nodiscard]] OwnWeights& weights() { return weights_; }

 private:
  [[nodiscard]] const std::vector<std::string>& groups_of(pid_t tid, Time now);
  void look_for_others(std::span<const Seen> window, Time now);

  static constexpr std::size_t max_threads = 1024;               // in a window
  static constexpr Duration lasts = std::chrono::seconds(1);     // a thread may move to another group
  static constexpr Duration visited = std::chrono::seconds(10);  // a group in which another thread was busy
  const sys::Procfs& procfs_;
  const sys::Groups& groups_;
  struct Place {
    std::vector<std::string> groups;
    Time seen{};
  };
  std::map<pid_t, Place> places_;
  GroupUse use_;
  Wanting others_;
  std::map<std::string, Time> visited_;
  OwnWeights weights_;
};

}  // namespace swapd::daemon
