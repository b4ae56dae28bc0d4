#include "guard_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "guard_messages.h"
#include "sys/seccomp.h"
#include "sys/self.h"

namespace swapd::daemon {
namespace {

constexpr int socket_number = 3;
constexpr int swapd_number = 4;
constexpr int epoll_number = 5;
constexpr int first_listener = 6;

// Keeps nothing of swapd's but the two descriptors, and puts them where no listener will come.
void keep_only(Fd socket, Fd swapd) {
  const int high_socket = ::fcntl(socket.get(), F_DUPFD_CLOEXEC, 16);
  const int high_swapd = ::fcntl(swapd.get(), F_DUPFD_CLOEXEC, 16);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (high_socket < 0 || high_swapd < 0 || null < 0) ::_exit(1);
  (void)socket.release();
  (void)swapd.release();
  for (int number : {0, 1, 2}) ::dup2(null, number);
  ::dup2(high_socket, socket_number);
  ::dup2(high_swapd, swapd_number);
  ::close_range(epoll_number, ~0U, 0);
}

// A session of its own, away from ^C and from the terminal's end; every signal blocked but the two that cannot be.
// Nothing here may fail the guard: with less privilege it is slower, not wrong.
void settle() {
  ::setsid();
  (void)!::chdir("/");
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  sys::name_thread("swapd-guard");
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  (void)sys::set_thread_nice(0, -20);
  (void)sys::set_own_autogroup_nice(-20);
  (void)sys::lock_memory();
}

class GuardLoop {
 public:
  [[noreturn]] void run() {
    if (::epoll_create1(EPOLL_CLOEXEC) != epoll_number) ::_exit(1);
    if (!add(socket_number, EPOLLIN) || !add(swapd_number, EPOLLIN)) ::_exit(1);
    std::array<epoll_event, 64> ready;
    for (;;) {
      const int n = ::epoll_wait(epoll_number, ready.data(), static_cast<int>(ready.size()), -1);
      for (int i = 0; i < n; ++i) handle(ready.at(static_cast<std::size_t>(i)));
      if (held_ == 0 && (alone_ || socket_closed_)) ::_exit(0);
    }
  }

 private:
  static bool add(int fd, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.fd = fd}};
    return ::epoll_ctl(epoll_number, EPOLL_CTL_ADD, fd, &event) == 0;
  }

  void handle(const epoll_event& event) {
    const int fd = event.data.fd;
    if (fd == socket_number) {
      take_messages();
    } else if (fd == swapd_number) {
      take_over();
    } else if ((event.events & EPOLLIN) != 0) {
      answer(fd);
    } else {  // hung up: the last program on it has ended
      // swapd has the listener open as well: to close our number alone would leave it in the set, hung up for ever.
      ::epoll_ctl(epoll_number, EPOLL_CTL_DEL, fd, nullptr);
      ::close(fd);
      --held_;
    }
  }

  void take_messages() {
    for (;;) {
      auto received = receive_message(socket_number);
      if (received) {
        hold(std::move(received).value());
        continue;
      }
      if (received.error().code() == EPROTO) continue;  // a stranger's word; the next may be well
      if (received.error().code() == EAGAIN || received.error().code() == EINTR) return;
      ::epoll_ctl(epoll_number, EPOLL_CTL_DEL, socket_number, nullptr);
      socket_closed_ = true;
      return;
    }
  }

  void hold(GuardReceived received) {
    GuardMessage answer;
    answer.kind = GuardMessage::Kind::answer;
    answer.sequence = received.message.sequence;
    const int fd = received.fd.get();
    if (received.message.kind != GuardMessage::Kind::hold)
      answer.error = EINVAL;
    else if (received.truncated)
      answer.error = EMFILE;
    else if (fd < 0)
      answer.error = EBADF;
    else if (!add(fd, alone_ ? EPOLLIN : 0U))  // EPOLLHUP needs no asking
      answer.error = errno;
    if (answer.error == 0) {
      highest_ = std::max(highest_, received.fd.release());
      ++held_;
    }
    if (!alone_) (void)send_message(socket_number, answer);
  }

  // swapd is gone. What it sent last is still on its way; then every listener is ours to answer.
  void take_over() {
    ::epoll_ctl(epoll_number, EPOLL_CTL_DEL, swapd_number, nullptr);
    alone_ = true;
    if (!socket_closed_) take_messages();
    for (int fd = first_listener; fd <= highest_; ++fd) {  // the numbers that are not listeners give ENOENT or EBADF
      epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
      ::epoll_ctl(epoll_number, EPOLL_CTL_MOD, fd, &event);
    }
  }

  // Polled readable, so this does not block: the kernel counts what comes in, and a call that has been withdrawn gives
  // ENOENT.
  static void answer(int fd) {
    if (const auto notification = sys::receive(fd)) (void)sys::answer_continue(fd, notification->id);
  }

  std::size_t held_ = 0;
  int highest_ = first_listener;
  bool alone_ = false;  // swapd has ended
  bool socket_closed_ = false;
};

}  // namespace

void run_guard(Fd socket, Fd swapd) {
  keep_only(std::move(socket), std::move(swapd));
  settle();
  GuardLoop().run();
}

}  // namespace swapd::daemon
