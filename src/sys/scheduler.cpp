#include "sys/scheduler.h"

#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

// glibc 2.36 wraps neither call. <linux/sched/types.h> brings a struct sched_param of its own in old kernels' headers;
// here it has struct sched_attr only.
namespace swapd::sys {
namespace {

// The policies' numbers, sched(7). <sched.h> of glibc lacks SCHED_DEADLINE, <linux/sched.h> gives it.
std::uint32_t number(SchedPolicy policy) {
  switch (policy) {
    case SchedPolicy::other:
      return SCHED_OTHER;
    case SchedPolicy::batch:
      return SCHED_BATCH;
    case SchedPolicy::idle:
      return SCHED_IDLE;
    case SchedPolicy::fifo:
      return SCHED_FIFO;
    case SchedPolicy::rr:
      return SCHED_RR;
    case SchedPolicy::deadline:
      return SCHED_DEADLINE;
  }
  return SCHED_OTHER;
}

SchedPolicy policy(std::uint32_t number) {
  switch (number) {
    case SCHED_BATCH:
      return SchedPolicy::batch;
    case SCHED_IDLE:
      return SchedPolicy::idle;
    case SCHED_FIFO:
      return SchedPolicy::fifo;
    case SCHED_RR:
      return SchedPolicy::rr;
    case SCHED_DEADLINE:
      return SchedPolicy::deadline;
    default:
      // 7 is SCHED_EXT (6.12): a fair thread that a BPF scheduler looks after; its nice still says how important it is.
      return SchedPolicy::other;
  }
}

// What EINVAL is about: sched_setattr(2) tells no more than the number.
std::string blame_for_invalid(const SchedAttr& attr) {
  switch (attr.policy) {
    case SchedPolicy::fifo:
    case SchedPolicy::rr:
      if (attr.rt_priority < 1 || attr.rt_priority > 99)
        return "rt_priority " + std::to_string(attr.rt_priority) + " is not within 1…99";
      return "policy " + std::string(name(attr.policy)) + " is not accepted for this thread";
    case SchedPolicy::deadline:
      return "runtime <= deadline <= period does not hold, or they are too short or too long";
    case SchedPolicy::other:
    case SchedPolicy::batch:
    case SchedPolicy::idle:
      if (attr.nice < -20 || attr.nice > 19) return "nice " + std::to_string(attr.nice) + " is not within -20…19";
      return "policy or runtime (the slice) is not accepted";
  }
  return "policy is unknown";
}

std::string blame_for_permission(const SchedAttr& attr) {
  if (attr.realtime() && attr.policy != SchedPolicy::deadline)
    return "needs CAP_SYS_NICE, or the thread's v1 cpu group has no cpu.rt_runtime_us";
  if (attr.policy == SchedPolicy::deadline) return "needs CAP_SYS_NICE and an affinity that spans the root domain";
  return "needs CAP_SYS_NICE";
}

Error set_error(int code, pid_t tid, const SchedAttr& attr) {
  std::string context = "setting " + std::string(name(attr.policy)) + " of thread " + std::to_string(tid);
  if (code == EINVAL) context += ": " + blame_for_invalid(attr);
  if (code == EPERM) context += ": " + blame_for_permission(attr);
  if (code == EBUSY) context += ": no deadline bandwidth left";
  return {code, std::move(context)};
}

}  // namespace

Result<SchedAttr> LinuxScheduler::get(pid_t tid) const {
  struct sched_attr raw {};
  if (::syscall(SYS_sched_getattr, tid, &raw, sizeof raw, 0) != 0)
    return errno_error("reading the scheduling attributes of thread " + std::to_string(tid));
  SchedAttr attr;
  attr.policy = policy(raw.sched_policy);
  attr.reset_on_fork = (raw.sched_flags & SCHED_FLAG_RESET_ON_FORK) != 0;
  // The kernel reports what the class does not use too (a FIFO thread's nice of old): only what counts is kept, so that
  // two equal states compare equal.
  switch (attr.policy) {
    case SchedPolicy::fifo:
    case SchedPolicy::rr:
      attr.rt_priority = static_cast<std::uint8_t>(raw.sched_priority);
      break;
    case SchedPolicy::deadline:
      attr.runtime_ns = raw.sched_runtime;
      attr.deadline_ns = raw.sched_deadline;
      attr.period_ns = raw.sched_period;
      break;
    case SchedPolicy::other:
    case SchedPolicy::batch:
    case SchedPolicy::idle:
      attr.nice = static_cast<std::int8_t>(raw.sched_nice);
      attr.runtime_ns = raw.sched_runtime;
      break;
  }
  return attr;
}

Status LinuxScheduler::set(pid_t tid, const SchedAttr& attr) const {
  struct sched_attr raw {};
  raw.size = sizeof raw;
  raw.sched_policy = number(attr.policy);
  raw.sched_flags = attr.reset_on_fork ? SCHED_FLAG_RESET_ON_FORK : 0;
  raw.sched_nice = attr.nice;
  raw.sched_priority = attr.rt_priority;
  raw.sched_runtime = attr.runtime_ns;
  raw.sched_deadline = attr.deadline_ns;
  raw.sched_period = attr.period_ns;
  if (::syscall(SYS_sched_setattr, tid, &raw, 0) != 0) return set_error(errno, tid, attr);
  return Done{};
}

Result<cpu_set_t> LinuxScheduler::affinity(pid_t tid) const {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(tid, sizeof cpus, &cpus) != 0)
    return errno_error("reading the affinity of thread " + std::to_string(tid));
  return cpus;
}

Status LinuxScheduler::set_affinity(pid_t tid, const cpu_set_t& cpus) const {
  if (::sched_setaffinity(tid, sizeof cpus, &cpus) != 0)
    return errno_error("setting the affinity of thread " + std::to_string(tid));
  return Done{};
}

}  // namespace swapd::sys
