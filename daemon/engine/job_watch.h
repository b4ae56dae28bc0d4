// Watches for parallel jobs on a thread of its own, because it reads procfs and opens perf events, which may take long.
//
// It sleeps while no managed thread may be coscheduled. Else it looks twenty times a second at how many
// threads of the machine want a CPU (proc(5), loadavg); while those are no more than there are CPUs, no thread competes
// and there is nothing to do. When they are, it samples the CPUs (sys/bpf/cpu_profile.h), and tells each window which
// threads had one, what for, what share is due to them, and which processes share memory or a launcher. It stops when
// no thread has competed for a while.
#pragma once

#include <sys/types.h>

#include <algorithm>
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
#include "engine/cpu_demand.h"
#include "engine/cpu_room.h"
#include "engine/job_evidence.h"
#include "kernel.h"
#include "sys/bpf/cpu_profile.h"
#include "sys/bpf/message_calls.h"
#include "sys/process/pi_mutex.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

struct ProfileWindow {
  Time begun{}, ended{};
  struct Thread {
    sys::CpuProfile::Thread seen;
    std::uint64_t job = 0;
    bool shares_memory = false;
    bool fits = true;              // the threads of its job can all have CPUs at once
    std::uint64_t room = 0;        // CpuRoom::room()
    bool yields = false;           // it was found by that, and not by samples
    double demand = 1;             // CpuDemand::of()
    double group_use = 1;          // 0…1: of its CPU, that the threads of its group had together
    double group_others = 1;       // in CPUs: that the group's threads which are not of its job had, on all CPUs
    std::uint64_t in_library = 0;  // samples at which it was in a library of WaitLibraries
    // Samples at which it waited on its CPU. A call that asks for messages and never blocks is a wait, too.
    [[nodiscard]] std::uint64_t waits() const {
      return std::max(seen.spins, in_library) + (seen.blocks == 0 ? seen.asks : 0);
    }
  };
  std::vector<Thread> threads;
  std::uint64_t others =
      0;  // samples of threads that are not managed, up to a tenth; the kernel's and swapd's own left out …
  double of_all = 0;  // … of so many, if no CPU idles
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
  // pids: the processes whose threads are told of, sorted. enough: one of them may be of a job; else it sleeps.
  void set_processes(std::vector<pid_t> pids, bool enough);
  // coscheduled: some job is, and what its threads are due must be known all the time.
  [[nodiscard]] std::vector<ProfileWindow> take(bool coscheduled);
  [[nodiscard]] Duration cpu_time() const;  // of its thread
  // The part of it that loading programs into the kernel has taken, which happens once.
  [[nodiscard]] Duration loading_time() const;
  // Tells of messages for threads that wait for them on their CPUs; null: no thread does, or it cannot be had.
  [[nodiscard]] std::shared_ptr<sys::MessageCalls> calls() const;
  // Whether threads often compete for CPUs, as of the last look; none: it does not look.
  [[nodiscard]] std::optional<bool> contended() const;
  // Why something cannot be had: the CPUs' samples, or messages that call. Empty: all can, as far as is known.
  [[nodiscard]] std::string trouble() const;

 private:
  void run(bool wanted);
  [[nodiscard]] bool wait(Duration time);  // false: it is to end
  [[nodiscard]] std::vector<pid_t> processes() const;
  [[nodiscard]] std::optional<int> runnable() const;
  void open_profile();
  void loading(bool begins);
  [[nodiscard]] bool samples() const { return profile_ && profile_->running(); }
  [[nodiscard]] bool is_users(pid_t tgid) const;
  void look_at_load();
  void forget_load();
  void follow_contention();
  void follow_messages(bool wanted);
  void tell_window(Time begun);
  void add_yielders(const std::vector<pid_t>& managed, ProfileWindow& window);
  void look_at_room(ProfileWindow& window);
  void look_at_demand(ProfileWindow& window);
  void read_mappings(const std::vector<pid_t>& busy, const std::vector<pid_t>& managed, Time now);

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
    std::shared_ptr<sys::MessageCalls> calls;  // while they are attached
    std::optional<bool> contended;
    std::string trouble;
  } shared_;  // under the mutex
  // State of the thread.
  Contention contention_;
  struct Mappings {
    MemorySharers sharers;
    WaitLibraries libraries;
    MappingLooks looks;
  } mappings_;
  struct Room {
    CpuRoom cpus;
    CpuDemand demand;
  } room_;  // that jobs have and need
  Yielders yielders_;
  SamplingTurns turns_;
  std::unique_ptr<sys::CpuProfile> profile_;
  struct Messages {
    std::shared_ptr<sys::MessageCalls> calls;
    BusyWaiters waiters;
    bool tried = false;
    Time wanted_until{};
  } messages_;
  std::thread thread_;
};

}  // namespace swapd::daemon
