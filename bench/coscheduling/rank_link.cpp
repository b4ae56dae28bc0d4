#include "coscheduling/rank_link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <optional>

namespace swapd::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t port = 4711;  // in a network namespace of its own
constexpr std::chrono::seconds meets_within{10};
constexpr useconds_t between_tries_us = 20'000;

sockaddr_in place_of(const std::string& address) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  (void)::inet_pton(AF_INET, address.c_str(), &place.sin_addr);
  return place;
}

Result<Fd> new_socket() {
  Fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made) return errno_error("a socket");
  return made;
}

bool at_once(int connection) {
  const int on = 1;
  return ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
}

}  // namespace

Result<RankLink> RankLink::take(const std::string& address) {
  auto listening = new_socket();
  if (!listening) return listening.error();
  const sockaddr_in place = place_of(address);
  const int on = 1;
  (void)::setsockopt(listening->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listening->get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
      ::listen(listening->get(), 1) != 0)
    return errno_error("listening at " + address);
  pollfd comes{listening->get(), POLLIN, 0};
  if (::poll(&comes, 1, static_cast<int>(std::chrono::milliseconds(meets_within).count())) <= 0)
    return Error(ETIMEDOUT, "the other node's rank");
  Fd connection(::accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection || !at_once(connection.get())) return errno_error("the other node's rank");
  return RankLink(std::move(connection));
}

Result<RankLink> RankLink::connect(const std::string& address) {
  const sockaddr_in place = place_of(address);
  const auto until = Clock::now() + meets_within;
  for (;;) {
    auto connection = new_socket();
    if (!connection) return connection.error();
    if (::connect(connection->get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0 &&
        at_once(connection->get()))
      return RankLink(std::move(*connection));
    if (Clock::now() >= until) return errno_error("connecting to " + address);
    ::usleep(between_tries_us);  // it does not listen yet
  }
}

bool RankLink::send() {
  const std::uint64_t message = 0;
  return ::send(connection_.get(), &message, sizeof message, MSG_NOSIGNAL) == sizeof message;
}

bool RankLink::receive(JobReceive how, std::int64_t spin_ns) {
  std::optional<std::int64_t> until;
  for (;;) {
    char part[sizeof(std::uint64_t)];
    const ssize_t got = ::recv(connection_.get(), part, sizeof part - read_, MSG_DONTWAIT);
    if (got > 0) {
      read_ = (read_ + static_cast<std::uint32_t>(got)) % sizeof part;
      if (read_ == 0) return true;
      continue;
    }
    if (got == 0 || errno != EAGAIN) return false;
    switch (how) {
      case receive_spin:
        job_pause();
        continue;
      case receive_yield:
        ::sched_yield();
        continue;
      case receive_spin_block:
        if (!until) until = job_now_ns() + spin_ns;
        if (job_now_ns() < *until) continue;
        break;
      case receive_block:
        break;
    }
    pollfd comes{connection_.get(), POLLIN, 0};
    (void)::poll(&comes, 1, -1);
  }
}

}  // namespace swapd::bench
