#include "guard/guard_setup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "guard/guard_process.h"
#include "sys/process/privilege.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {
namespace {

void set_oom_score(const char* text, std::size_t size) {
  const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  (void)!::write(score.get(), text, size);
}

}  // namespace

void stand_alone(const char* name) {
  ::setsid();
  (void)!::chdir("/");
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  sys::name_thread(name);
  set_oom_score("-1000", 5);
  (void)sys::set_thread_nice(0, -20);
  (void)sys::set_own_autogroup_nice(-20);
  sys::keep_needed_capabilities();
}

void settle_guard() {
  struct sigaction ring {};
  ring.sa_handler = [](int) {};  // no SA_RESTART: a blocked call shall come back
  ::sigaction(SIGALRM, &ring, nullptr);
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  (void)sys::lock_memory(true);
}

void alarm_every(std::chrono::microseconds period) {
  const timeval each{.tv_sec = 0, .tv_usec = period.count()};
  const itimerval timer{.it_interval = each, .it_value = each};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

int keep_only(Fd socket, Fd swapd, Fd first, int next) {
  const int high_socket = ::fcntl(socket.get(), F_DUPFD_CLOEXEC, guard_fd::free);
  const int high_swapd = ::fcntl(swapd.get(), F_DUPFD_CLOEXEC, guard_fd::free);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int kept = first ? ::fcntl(first.get(), F_DUPFD_CLOEXEC, guard_fd::free) : -1;
  if (high_socket < 0 || high_swapd < 0 || null < 0 || (first && kept < 0)) ::_exit(1);
  for (Fd* each : {&socket, &swapd, &first}) (void)each->release();
  for (int number : {0, 1, 2}) ::dup2(null, number);
  ::dup2(high_socket, guard_fd::socket);
  ::dup2(high_swapd, guard_fd::swapd);
  const auto from = static_cast<unsigned>(next);
  if (kept >= 0) ::close_range(from, static_cast<unsigned>(kept) - 1, 0);
  ::close_range(kept >= 0 ? static_cast<unsigned>(kept) + 1 : from, ~0U, 0);
  return kept;
}

void start_swapd(char** command, unsigned restart_count) {
  ::setsid();
  ::setenv(deaths_name, std::to_string(restart_count).c_str(), 1);
  set_oom_score("0", 1);
  (void)sys::set_thread_nice(0, 0);
  ::signal(SIGALRM, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::close_range(3, ~0U, 0);
  (void)!::chdir(command[0]);
  ::execv(command[1], command + 2);
  ::_exit(127);
}

}  // namespace swapd::daemon
