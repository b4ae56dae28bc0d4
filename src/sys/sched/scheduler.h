// Scheduling attributes of threads and of their groups. Source: sched_setattr(2), sched(7), cgroups(7).
#pragma once

#include <sched.h>

#include <cstdint>

#include "base/result.h"
#include "base/sched_attr.h"

namespace swapd::sys {

class Scheduler {
 public:
  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;
  // tid 0 is the calling thread. ESRCH: gone. EPERM: privilege, or a v1 cpu group without real-time runtime.
  [[nodiscard]] virtual Result<SchedAttr> get(pid_t tid) const = 0;
  [[nodiscard]] virtual Status set(pid_t tid, const SchedAttr& attr) const = 0;
  // The nice value, which a real-time thread keeps too and gets back with its ordinary class; get() cannot show it
  // then.
  [[nodiscard]] virtual Result<int> nice(pid_t tid) const = 0;
  // As renice(1): whatever its class, which stays.
  [[nodiscard]] virtual Status set_nice(pid_t tid, int nice) const = 0;
  // The slice of a fair thread without one of its own; 0: the kernel has no slices (before 6.12).
  [[nodiscard]] virtual std::uint64_t default_slice_ns() const { return 0; }
  // Whether the thread could give itself these from the lowest of all: it has CAP_SYS_NICE in our user namespace, or
  // limits that allow it (sched(7), RLIMIT_RTPRIO, RLIMIT_NICE).
  [[nodiscard]] virtual bool may_take(pid_t /*tid*/, const SchedAttr& /*attr*/) const { return true; }
  // Whether the thread's process would be told (SIGXCPU) or killed for running real-time for long: it has a finite
  // RLIMIT_RTTIME (getrlimit(2)).
  [[nodiscard]] virtual bool limits_realtime(pid_t /*tid*/) const { return false; }
  // ioprio_set(2)'s number; class none: it has that of its CPU attributes.
  [[nodiscard]] virtual Result<int> io_priority(pid_t /*tid*/) const { return 0; }
  [[nodiscard]] virtual Status set_io_priority(pid_t /*tid*/, int /*raw*/) const { return Done{}; }
  // Whether they have one I/O priority together (clone(2), CLONE_IO; io_uring's workers).
  [[nodiscard]] virtual bool shares_io(pid_t /*tid*/, pid_t /*other*/) const { return false; }
  [[nodiscard]] virtual Result<cpu_set_t> affinity(pid_t tid) const = 0;
  [[nodiscard]] virtual Status set_affinity(pid_t tid, const cpu_set_t& cpus) const = 0;
};

class LinuxScheduler final : public Scheduler {
 public:
  LinuxScheduler();
  // EOPNOTSUPP: a class that set() could not give back (sched_ext).
  [[nodiscard]] Result<SchedAttr> get(pid_t tid) const override;
  [[nodiscard]] Status set(pid_t tid, const SchedAttr& attr) const override;
  [[nodiscard]] Result<int> nice(pid_t tid) const override;
  [[nodiscard]] Status set_nice(pid_t tid, int nice) const override;
  [[nodiscard]] std::uint64_t default_slice_ns() const override { return default_slice_ns_; }
  [[nodiscard]] bool may_take(pid_t tid, const SchedAttr& attr) const override;
  [[nodiscard]] bool limits_realtime(pid_t tid) const override;
  [[nodiscard]] Result<int> io_priority(pid_t tid) const override;
  [[nodiscard]] Status set_io_priority(pid_t tid, int raw) const override;
  [[nodiscard]] bool shares_io(pid_t tid, pid_t other) const override;
  [[nodiscard]] Result<cpu_set_t> affinity(pid_t tid) const override;
  [[nodiscard]] Status set_affinity(pid_t tid, const cpu_set_t& cpus) const override;

 private:
  std::uint64_t default_slice_ns_ = 0;
  // Some kernels of 5.15 say best effort, level 4 of a thread that has none: then that is read as none.
  int reads_as_none_ = 0;
};

}  // namespace swapd::sys
