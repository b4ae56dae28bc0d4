// Blocks in io_uring_enter, on the reading ends of two pipes or on sockets. The provider has the other ends.
#include <liburing.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "programs/block.h"

using block::must;

namespace {

// Descriptors 0 are the waiter's, 1 the provider's.
using Pairs = std::array<std::array<int, 2>, 2>;

template <typename Wait>
void play(const Pairs& pairs, const Wait& wait) {
  const pid_t provider = block::spawn([&] {
    for (const auto& pair : pairs) ::close(pair[0]);
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    for (const auto& pair : pairs) ::close(pair[1]);
    wait(pairs[0][0], pairs[1][0]);
  });
  for (const auto& pair : pairs)
    for (const int end : pair) ::close(end);
  block::report(waiter, provider);
}

template <typename Wait>
void with_pipes(const Wait& wait) {
  Pairs pipes{};
  for (auto& pipe : pipes) must(::pipe(pipe.data()), "pipe");
  play(pipes, wait);
}

template <typename Wait>
void with_sockets(const Wait& wait) {
  Pairs sockets{};
  for (auto& pair : sockets) must(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), "socketpair");
  play(sockets, wait);
}

char buffer[16];

io_uring ring_of(unsigned flags = 0) {
  io_uring ring{};
  must(io_uring_queue_init(8, &ring, flags), "io_uring_queue_init");
  return ring;
}

void wait_in(io_uring& ring) { io_uring_submit_and_wait(&ring, 1); }

void add_read(io_uring& ring, int fd) { io_uring_prep_read(io_uring_get_sqe(&ring), fd, buffer, sizeof buffer, 0); }

void read_both(int a, int b, unsigned flags) {
  io_uring ring = ring_of(flags);
  add_read(ring, a);
  add_read(ring, b);
  wait_in(ring);
}

void poll_both(int a, int b) {
  io_uring ring = ring_of();
  io_uring_prep_poll_add(io_uring_get_sqe(&ring), a, POLLIN);
  io_uring_prep_poll_add(io_uring_get_sqe(&ring), b, POLLIN);
  wait_in(ring);
}

// The one whose number is closed, or another file's, is still read from.
void read_closed(int a, int b) {
  io_uring ring = ring_of();
  add_read(ring, a);
  add_read(ring, b);
  io_uring_submit(&ring);
  ::close(a);
  must(::dup2(must(::open("/dev/null", O_RDONLY), "open"), b), "dup2");
  io_uring_cqe* done = nullptr;
  io_uring_wait_cqe(&ring, &done);
}

void read_fixed(int a, int b) {
  io_uring ring = ring_of();
  const std::array<int, 2> files = {a, b};
  must(io_uring_register_files(&ring, files.data(), files.size()), "io_uring_register_files");
  ::close(a);
  ::close(b);
  for (const int index : {0, 1}) {
    io_uring_sqe* request = io_uring_get_sqe(&ring);
    io_uring_prep_read(request, index, buffer, sizeof buffer, 0);
    request->flags |= IOSQE_FIXED_FILE;
  }
  wait_in(ring);
}

void read_registered(int a, int b) {
  io_uring ring = ring_of();
  must(io_uring_register_ring_fd(&ring), "io_uring_register_ring_fd");
  add_read(ring, a);
  add_read(ring, b);
  wait_in(ring);
}

// Eventfds have one inode all: the number alone would name another one.
void read_reused_eventfd(int a, int b) {
  io_uring ring = ring_of();
  add_read(ring, a);
  const int event = must(::eventfd(0, 0), "eventfd");
  add_read(ring, event);
  io_uring_submit(&ring);
  must(::dup2(must(::eventfd(0, 0), "eventfd"), event), "dup2");
  (void)b;
  io_uring_cqe* done = nullptr;
  io_uring_wait_cqe(&ring, &done);
}

void poll_set(int a, int b) {
  const int set = must(::epoll_create1(0), "epoll_create1");
  for (const int fd : {a, b}) {
    epoll_event event{};
    event.events = EPOLLIN;
    must(::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
  }
  io_uring ring = ring_of();
  io_uring_prep_poll_add(io_uring_get_sqe(&ring), set, POLLIN);
  wait_in(ring);
}

void receive(int a, int b) {
  io_uring ring = ring_of();
  io_uring_prep_recv(io_uring_get_sqe(&ring), a, buffer, sizeof buffer, 0);
  io_uring_prep_recv(io_uring_get_sqe(&ring), b, buffer, sizeof buffer, 0);
  wait_in(ring);
}

// The waiter is not its process's first thread.
void with_threads() {
  std::array<int, 2> pipe{};
  must(::pipe(pipe.data()), "pipe");
  std::array<int, 2> told{};
  must(::pipe(told.data()), "pipe");
  const pid_t provider = block::spawn([&] {
    ::close(pipe[0]);
    block::idle();
  });
  block::spawn([&] {
    ::close(pipe[1]);
    std::thread([&] {
      const pid_t tid = ::gettid();
      must(static_cast<int>(::write(told[1], &tid, sizeof tid)), "write");
      io_uring ring = ring_of();
      add_read(ring, pipe[0]);
      wait_in(ring);
    }).join();
  });
  ::close(pipe[0]);
  ::close(pipe[1]);
  pid_t waiter = -1;
  must(static_cast<int>(::read(told[0], &waiter, sizeof waiter)), "read");
  block::report(waiter, provider);
}

void wait_for_time(int, int) {
  io_uring ring = ring_of();
  __kernel_timespec time{.tv_sec = 1000, .tv_nsec = 0};
  io_uring_prep_timeout(io_uring_get_sqe(&ring), &time, 0, 0);
  wait_in(ring);
}

constexpr block::Scenario scenarios[] = {
    {"ring-read", [] { with_pipes([](int a, int b) { read_both(a, b, 0); }); }},
    {"ring-single-issuer",
     [] {
       with_pipes([](int a, int b) { read_both(a, b, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN); });
     }},
    {"ring-poll", [] { with_pipes(poll_both); }},
    {"ring-closed", [] { with_pipes(read_closed); }},
    {"ring-fixed", [] { with_pipes(read_fixed); }},
    {"ring-registered", [] { with_pipes(read_registered); }},
    {"ring-eventfd", [] { with_pipes(read_reused_eventfd); }},
    {"ring-thread", [] { with_threads(); }},
    {"ring-epoll", [] { with_pipes(poll_set); }},
    {"ring-recv", [] { with_sockets(receive); }},
    {"ring-timeout", [] { with_pipes(wait_for_time); }},
};

}  // namespace

int main(int argc, char** argv) { return block::main_of(argc, argv, scenarios); }
