#include "sys/sched/scheduler.h"

#include <linux/capability.h>
#include <linux/kcmp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "sys/process/privilege.h"
#include "sys/procfs/procfs_path.h"

namespace swapd::sys {
namespace {

// glibc 2.36 wraps neither call, and <linux/sched/types.h> clashes with <sched.h>: the layout is sched_setattr(2)'s,
// its first version (48 bytes).
struct RawAttr {
  std::uint32_t size = sizeof(RawAttr);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};
static_assert(sizeof(RawAttr) == 48);
// For ioprio_get(2) and ioprio_set(2), which it does not wrap either; <linux/ioprio.h> is no older than 5.15.
constexpr int who_thread = 1;  // IOPRIO_WHO_PROCESS
constexpr std::uint64_t reset_on_fork_flag = 0x01;
constexpr std::uint32_t deadline_policy = 6;  // <sched.h> has the others

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
      return deadline_policy;
  }
  return SCHED_OTHER;
}

// Empty: a class swapd cannot name and therefore could not give back (7 is SCHED_EXT, since 6.12).
std::optional<SchedPolicy> policy_of(std::uint32_t number) {
  switch (number) {
    case SCHED_OTHER:
      return SchedPolicy::other;
    case SCHED_BATCH:
      return SchedPolicy::batch;
    case SCHED_IDLE:
      return SchedPolicy::idle;
    case SCHED_FIFO:
      return SchedPolicy::fifo;
    case SCHED_RR:
      return SchedPolicy::rr;
    case deadline_policy:
      return SchedPolicy::deadline;
    default:
      return std::nullopt;
  }
}

// The cause of an EINVAL: sched_setattr(2) tells no more than the number.
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

// A fair thread without a slice of its own shows the default one (kernel/sched/syscalls.c, get_params()). To write that
// back would pin it, so the default is learnt here, on the calling thread, whose own slice is put back.
LinuxScheduler::LinuxScheduler() {
  constexpr int best_effort_4 = 2 << 13 | 4;
  if (::syscall(SYS_ioprio_get, who_thread, 0) == best_effort_4) reads_as_none_ = best_effort_4;
  RawAttr own;
  if (::syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) != 0) return;
  if (own.policy != SCHED_OTHER && own.policy != SCHED_BATCH) return;
  RawAttr probe = own;
  probe.runtime = 0;
  RawAttr fresh;
  if (own.runtime == 0 || ::syscall(SYS_sched_setattr, 0, &probe, 0) != 0) return;
  if (::syscall(SYS_sched_getattr, 0, &fresh, sizeof fresh, 0) != 0) return;
  default_slice_ns_ = fresh.runtime;
  if (own.runtime != fresh.runtime) (void)::syscall(SYS_sched_setattr, 0, &own, 0);
}

Result<SchedAttr> LinuxScheduler::get(pid_t tid) const {
  RawAttr raw;
  if (::syscall(SYS_sched_getattr, tid, &raw, sizeof raw, 0) != 0)
    return errno_error("reading the scheduling attributes of thread " + std::to_string(tid));
  const std::optional<SchedPolicy> policy = policy_of(raw.policy);
  if (!policy)
    return Error(EOPNOTSUPP, "thread " + std::to_string(tid) + " has scheduling policy " + std::to_string(raw.policy));
  SchedAttr attr;
  attr.policy = *policy;
  attr.reset_on_fork = (raw.flags & reset_on_fork_flag) != 0;
  switch (attr.policy) {
    case SchedPolicy::fifo:
    case SchedPolicy::rr:
      attr.rt_priority = static_cast<std::uint8_t>(raw.priority);
      break;
    case SchedPolicy::deadline:
      attr.runtime_ns = raw.runtime;
      attr.deadline_ns = raw.deadline;
      attr.period_ns = raw.period;
      break;
    case SchedPolicy::other:
    case SchedPolicy::batch:
    case SchedPolicy::idle:
      attr.nice = static_cast<std::int8_t>(raw.nice);
      attr.runtime_ns = raw.runtime == default_slice_ns_ ? 0 : raw.runtime;
      break;
  }
  return attr;
}

Status LinuxScheduler::set(pid_t tid, const SchedAttr& attr) const {
  RawAttr raw;
  raw.policy = number(attr.policy);
  raw.flags = attr.reset_on_fork ? reset_on_fork_flag : 0;
  raw.nice = attr.nice;
  raw.priority = attr.rt_priority;
  raw.runtime = attr.runtime_ns;
  raw.deadline = attr.deadline_ns;
  raw.period = attr.period_ns;
  if (::syscall(SYS_sched_setattr, tid, &raw, 0) != 0) return set_error(errno, tid, attr);
  // SCHED_IDLE keeps the nice value for later, shows it, and does not take it from sched_setattr(2).
  if (attr.policy == SchedPolicy::idle && ::setpriority(PRIO_PROCESS, static_cast<id_t>(tid), attr.nice) != 0)
    return set_error(errno, tid, attr);
  return Done{};
}

Result<int> LinuxScheduler::nice(pid_t tid) const {
  errno = 0;  // -1 is a nice value too, getpriority(2)
  const int value = ::getpriority(PRIO_PROCESS, static_cast<id_t>(tid));
  if (errno != 0) return errno_error("reading the nice value of thread " + std::to_string(tid));
  return value;
}

Status LinuxScheduler::set_nice(pid_t tid, int nice) const {
  if (::setpriority(PRIO_PROCESS, static_cast<id_t>(tid), nice) != 0)
    return errno_error("setting the nice value of thread " + std::to_string(tid));
  return Done{};
}

bool LinuxScheduler::may_take(pid_t tid, const SchedAttr& attr) const {
  struct stat theirs {};
  struct stat ours {};
  const ProcPath space("/proc", tid, "ns/user");
  const bool same_namespace =
      ::stat(space.c_str(), &theirs) == 0 && ::stat("/proc/self/ns/user", &ours) == 0 && theirs.st_ino == ours.st_ino;
  if (same_namespace && has_capability(CAP_SYS_NICE, tid)) return true;
  const bool realtime = attr.realtime();
  rlimit limit{};
  if (::prlimit(tid, realtime ? RLIMIT_RTPRIO : RLIMIT_NICE, nullptr, &limit) != 0) return false;
  if (attr.policy == SchedPolicy::deadline) return false;  // needs the capability
  return realtime ? limit.rlim_cur >= attr.rt_priority : limit.rlim_cur >= static_cast<rlim_t>(20 - attr.nice);
}

// The kernel looks at the soft limit alone, which is never above the hard one. Without CAP_SYS_RESOURCE prlimit(2)
// tells nothing of another user's process, and /proc does.
bool LinuxScheduler::limits_realtime(pid_t tid) const {
  rlimit limit{};
  if (::prlimit(tid, RLIMIT_RTTIME, nullptr, &limit) == 0) return limit.rlim_cur != RLIM_INFINITY;
  if (errno == ESRCH) return false;
  std::ifstream limits(ProcPath("/proc", tid, "limits").c_str());
  const std::string wanted = "Max realtime timeout";
  for (std::string line; std::getline(limits, line);)
    if (line.starts_with(wanted)) return line.find("unlimited") > wanted.size() + 24;
  return true;  // there might be one
}

Result<int> LinuxScheduler::io_priority(pid_t tid) const {
  const long raw = ::syscall(SYS_ioprio_get, who_thread, tid);
  if (raw < 0) return errno_error("ioprio_get");
  return raw == reads_as_none_ ? 0 : static_cast<int>(raw);
}

Status LinuxScheduler::set_io_priority(pid_t tid, int raw) const {
  if (::syscall(SYS_ioprio_set, who_thread, tid, raw) != 0) return errno_error("ioprio_set");
  return Done{};
}

bool LinuxScheduler::shares_io(pid_t tid, pid_t other) const {
  return ::syscall(SYS_kcmp, tid, other, KCMP_IO, 0, 0) == 0;
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
