// Finds who has the CPUs, what for, and what share is due to them: samples at each CPU's clock by a BPF program
// (programs/profile.bpf.c). Nothing is attached to switches or wakeups: it costs a microsecond a sample and CPU.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace swapd::sys {

class CpuProfile {
 public:
  // period: between two samples of a CPU that is not idle. Takes long where no perf event was ever opened
  // (synchronize_rcu()). EPERM, ENOTSUP …: it cannot be had here.
  [[nodiscard]] static Result<std::unique_ptr<CpuProfile>> open(Duration period);
  ~CpuProfile();
  CpuProfile(const CpuProfile&) = delete;
  CpuProfile& operator=(const CpuProfile&) = delete;

  struct Thread {
    pid_t tid = 0, tgid = 0;
    std::uint64_t samples = 0;  // since the last read()
    std::uint64_t in_user = 0;  // … in its own code
    std::uint64_t spins = 0;    // … of those, in a loop that waits
    std::uint64_t yields = 0;   // … in sched_yield(2)
    std::uint64_t asks = 0;     // … in poll(2) and the like; one that never blocks waits so for messages
    // Some other thread that counts was queued where it is each time that was looked at. true: also where it was not.
    std::array<std::uint64_t, 8> places{};  // addresses of its code, where it was at the last samples there; 0: none
    bool rivals = true;
    std::uint64_t looks = 0;        // at what it is due; none: `inner` and `upper` are not known
    double inner = 1;               // 0…1: what it was due of the CPU time of its group there
    double upper = 1;               // 0…1: what its groups were due of the CPU
    std::uint64_t group = 0;        // the same for threads of one group on one CPU; of no other meaning
    std::uint64_t whole_group = 0;  // the same for threads of one group; 0: not known
    std::uint32_t weight = 0;       // by its nice value, whatever its class is now
    int cpu = 0;                    // that it was on last
    Duration cpu_time{};            // since the read() before that saw it; its samples' time if there was none
    std::uint64_t blocks = 0;       // voluntary context switches since then
  };
  // Between the two no samples are taken, and nothing is spent. To open a profile anew takes some 100 ms of CPU time
  // (BTF is read, and the kernel verifies the program); these take a microsecond for each CPU. resume() forgets what
  // was seen and followed before.
  void pause();
  void resume();
  [[nodiscard]] bool running() const;
  // The share that is due to this thread is looked at also while others have its CPU.
  void follow(pid_t tid);
  // The threads that had a CPU at a sample since the last call, or were followed.
  [[nodiscard]] std::vector<Thread> read();

 private:
  struct Impl;
  explicit CpuProfile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::sys
