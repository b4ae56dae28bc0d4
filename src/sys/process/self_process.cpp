#include "sys/process/self_process.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SWAPD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SWAPD_SANITIZED 1
#endif
#endif

namespace swapd::sys {

Status lock_memory([[maybe_unused]] bool all) {
#ifndef SWAPD_SANITIZED  // the shadow memory of a sanitizer cannot be locked
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | (all ? 0 : MCL_ONFAULT)) != 0)
    return errno_error("locking memory (CAP_IPC_LOCK or a higher RLIMIT_MEMLOCK is missing)");
#endif
  return Done{};
}

Status give_back_memory() {
#ifndef SWAPD_SANITIZED
  const bool unlocked = ::munlockall() == 0;
  ::malloc_trim(0);
  if (unlocked) return lock_memory();
#endif
  return Done{};
}

void reserve_heap(std::size_t bytes) {
  constexpr std::size_t piece = 64 << 10;  // well below what would get a mapping of its own
  std::vector<std::unique_ptr<char[]>> pieces;
  for (std::size_t got = 0; got < bytes; got += piece) pieces.emplace_back(new char[piece]);
}

Status reserve_descriptors(unsigned count) {
  const Fd any(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!any) return errno_error("opening /dev/null");
  const Fd last(::fcntl(any.get(), F_DUPFD_CLOEXEC, static_cast<int>(count) - 1));
  if (!last) return errno_error("making room for " + std::to_string(count) + " open files");
  return Done{};
}

Status set_own_autogroup_nice(int nice) {
  const Fd file(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
  if (!file) return errno_error("opening /proc/self/autogroup");
  const std::string text = std::to_string(nice);
  if (::write(file.get(), text.data(), text.size()) < 0) return errno_error("setting the nice of our autogroup");
  return Done{};
}

Status set_thread_nice(pid_t tid, int nice) {
  if (::setpriority(PRIO_PROCESS, static_cast<id_t>(tid), nice) != 0)
    return errno_error("setting nice " + std::to_string(nice) + " (CAP_SYS_NICE or a higher RLIMIT_NICE is missing)");
  return Done{};
}

void go_before_ordinary_threads() {
  const sched_param lowest{.sched_priority = 1};
  if (::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) != 0) (void)set_thread_nice(0, -20);
}

void name_thread(const char* name) { ::pthread_setname_np(::pthread_self(), name); }

pid_t own_tid() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

namespace {
Duration time_on(clockid_t clock) {
  timespec used{};
  if (::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}
}  // namespace

Duration own_cpu_time() { return time_on(CLOCK_THREAD_CPUTIME_ID); }

Duration own_thread_cpu_time(pid_t tid) {
  constexpr unsigned per_thread_sched =
      4 | 2;  // CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED, as glibc encodes thread clocks
  return time_on(static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | per_thread_sched));
}

Duration process_cpu_time(pid_t pid) {
  clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
  if (pid != 0 && ::clock_getcpuclockid(pid, &clock) != 0) return {};
  return time_on(clock);
}

Result<int> pid_of_pidfd(int pidfd) {
  const std::string path = "/proc/self/fdinfo/" + std::to_string(pidfd);
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno_error("reading fdinfo of a pidfd");
  std::array<char, 1024> text{};
  const ssize_t n = ::read(file.get(), text.data(), text.size() - 1);
  if (n < 0) return errno_error("reading fdinfo of a pidfd");
  const char* line = std::strstr(text.data(), "\nPid:");
  if (line == nullptr) return Error(EINVAL, "the descriptor is no pidfd");
  return static_cast<int>(std::strtol(line + 5, nullptr, 10));
}

}  // namespace swapd::sys
