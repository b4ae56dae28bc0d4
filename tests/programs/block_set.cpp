// Blocks in poll, select and epoll on the reading ends of two pipes. The provider has both writing ends.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include <array>
#include <cstdint>

#include "programs/block.h"

using block::must;

namespace {

struct Pipes {
  std::array<std::array<int, 2>, 2> pipes{};
  Pipes() {
    for (auto& p : pipes) must(::pipe(p.data()), "pipe");
  }
  void close(int end) const {
    for (const auto& p : pipes) ::close(p.at(end));
  }
};

template <typename Wait>
void play(const Wait& wait) {
  const Pipes pipes;
  const pid_t provider = block::spawn([&] {
    pipes.close(0);
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    pipes.close(1);
    wait(pipes.pipes[0][0], pipes.pipes[1][0]);
  });
  pipes.close(0);
  pipes.close(1);
  block::report(waiter, provider);
}

void add(int set, int fd, std::uint32_t events = EPOLLIN) {
  epoll_event event{};
  event.events = events;
  must(::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

void wait_in(int set) {
  epoll_event event{};
  ::epoll_wait(set, &event, 1, -1);
}

void with_poll(int a, int b) {
  pollfd fds[] = {{a, POLLIN, 0}, {-1, POLLIN, 0}, {b, POLLIN, 0}, {a, POLLIN, 0}};
  ::poll(fds, 4, -1);
}

void with_timeout(int a, int b) {
  pollfd fds[] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
  ::poll(fds, 2, 1'000'000);
}

void with_ppoll(int a, int b) {
  pollfd fds[] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
  ::ppoll(fds, 2, nullptr, nullptr);
}

void with_select(int a, int b) {
  fd_set fds;
  FD_ZERO(&fds);
  FD_SET(a, &fds);
  FD_SET(b, &fds);
  ::select(b + 1, &fds, nullptr, nullptr, nullptr);
}

void with_epoll(int a, int b) {
  const int set = must(::epoll_create1(0), "epoll_create1");
  add(set, a);
  add(set, b);
  wait_in(set);
}

void with_pwait2(int a, int b) {
  const int set = must(::epoll_create1(0), "epoll_create1");
  add(set, a);
  add(set, b);
  epoll_event event{};
  ::syscall(SYS_epoll_pwait2, set, &event, 1, nullptr, nullptr, 0);
}

// A set in a set in a set, the innermost reached on two ways.
void with_nested(int a, int b) {
  const int inner = must(::epoll_create1(0), "epoll_create1");
  const int middle = must(::epoll_create1(0), "epoll_create1");
  const int outer = must(::epoll_create1(0), "epoll_create1");
  add(inner, a);
  add(middle, b);
  add(middle, inner);
  add(outer, inner);
  add(outer, middle);
  wait_in(outer);
}

// The members' numbers have been closed and given to other files; duplicates keep them in the set.
void with_stale(int a, int b) {
  const int set = must(::epoll_create1(0), "epoll_create1");
  add(set, a);
  add(set, b);
  must(::dup(a), "dup");
  must(::dup(b), "dup");
  const int other = must(::open("/dev/null", O_RDONLY), "open");
  ::dup2(other, a);
  ::close(b);
  wait_in(set);
}

// Members that nobody provides, or that time does.
void with_timer(int a, int b) {
  const int set = must(::epoll_create1(0), "epoll_create1");
  add(set, a);
  add(set, b);
  add(set, must(::timerfd_create(CLOCK_MONOTONIC, 0), "timerfd_create"));
  wait_in(set);
}

void with_signalfd(int, int) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pollfd fds[] = {{must(::signalfd(-1, &set, 0), "signalfd"), POLLIN, 0}};
  ::poll(fds, 1, -1);
}

constexpr block::Scenario scenarios[] = {
    {"poll", [] { play(with_poll); }},
    {"ppoll", [] { play(with_ppoll); }},
    {"select", [] { play(with_select); }},
    {"epoll", [] { play(with_epoll); }},
    {"epoll-pwait2", [] { play(with_pwait2); }},
    {"epoll-nested", [] { play(with_nested); }},
    {"epoll-stale", [] { play(with_stale); }},
    {"epoll-timer", [] { play(with_timer); }},
    {"poll-timeout", [] { play(with_timeout); }},
    {"poll-signalfd", [] { play(with_signalfd); }},
};

}  // namespace

int main(int argc, char** argv) { return block::main_of(argc, argv, scenarios); }
