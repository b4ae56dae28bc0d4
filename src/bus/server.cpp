#include "bus/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "bus/connection.h"

namespace swapd::bus {

Server::Server(sd_event* loop, Backend& backend, std::string socket_path, ServerLimits limits)
    : loop_(sd_event_ref(loop)),
      manager_(backend, limits.queued_messages, limits.requests),
      path_(std::move(socket_path)),
      limits_(limits) {}

Server::~Server() {
  connections_.clear();
  sd_event_source_disable_unref(accept_source_);
  sd_event_source_disable_unref(resume_source_);
  sd_event_source_disable_unref(reap_source_);
  sd_event_unref(loop_);
}

Status Server::listen() {
  const auto failed = [](int r) { return Error(-r, "watching the private socket"); };
  Result<ListeningSocket> socket = ListeningSocket::open(path_);
  if (!socket) return std::move(socket).error();
  socket_.emplace(std::move(socket).value());
  if (const int r = sd_id128_randomize(&id_); r < 0) return failed(r);
  if (const int r = sd_event_add_defer(loop_, &reap_source_, on_reap, this); r < 0) return failed(r);
  if (const int r = sd_event_source_set_enabled(reap_source_, SD_EVENT_OFF); r < 0) return failed(r);
  // Made now: when it is needed there is no descriptor left for it either.
  if (const int r = sd_event_add_time(loop_, &resume_source_, CLOCK_MONOTONIC, UINT64_MAX, 1, on_resume, this); r < 0)
    return failed(r);
  if (const int r = sd_event_source_set_enabled(resume_source_, SD_EVENT_OFF); r < 0) return failed(r);
  if (const int r = sd_event_add_io(loop_, &accept_source_, socket_->fd(), EPOLLIN, on_accept, this); r < 0)
    return failed(r);
  return Done{};
}

ServerStats Server::stats() const {
  ServerStats now = stats_;
  now.connections = connections_.size();
  now.dropped_events_total = manager_.dropped_events();
  return now;
}

int Server::on_accept(sd_event_source*, int, std::uint32_t, void* data) {
  static_cast<Server*>(data)->accept_all();
  return 0;
}

void Server::accept_all() {
  constexpr int batch = 64;
  for (int i = 0; i < batch; ++i) {
    Fd fd(::accept4(socket_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      admit(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      // Without a descriptor to accept with, the listening socket stays readable: look away instead of spinning.
      pause_accepting(250'000);
      return;
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
  // A flood: this source would be ready again at once, and sd-event does not always take equals in turn (each look at
  // a connection sets its timer anew, which puts it behind). So it is not ready for a moment.
  pause_accepting(1'000);
}

void Server::admit(Fd fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool known = ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  if (!known || (peer.uid != 0 && peer.uid != socket_->owner()) || !make_place(peer.uid)) {
    ++stats_.refused_total;
    return;
  }
  auto connection = std::make_unique<Connection>(*this, peer.uid);
  if (Status started = connection->start(std::move(fd)); !started) {
    ++stats_.refused_total;
    return;
  }
  ++stats_.accepted_total;
  connections_.push_back(std::move(connection));
}

bool Server::make_place(uid_t newcomer) {
  reap();
  if (connections_.size() < limits_.connections) return true;
  // They stand in the order they came.
  const auto gives_way = [&](const auto& c) { return newcomer == 0 || c->user() == newcomer; };
  auto victim = std::find_if(connections_.begin(), connections_.end(),
                             [&](const auto& c) { return !c->authenticated() && gives_way(c); });
  if (victim == connections_.end())
    for (auto it = connections_.begin(); it != connections_.end(); ++it)
      if (!(*it)->follows() && gives_way(*it) &&
          (victim == connections_.end() || (*it)->last_active_us() < (*victim)->last_active_us()))
        victim = it;
  if (victim == connections_.end() && newcomer == 0)
    victim = std::find_if(connections_.begin(), connections_.end(), [](const auto& c) { return c->user() != 0; });
  if (victim == connections_.end()) return false;
  ++stats_.evicted_total;
  connections_.erase(victim);
  return true;
}

void Server::pause_accepting(std::uint64_t pause_us) {
  if (sd_event_source_set_time_relative(resume_source_, pause_us) >= 0 &&
      sd_event_source_set_enabled(resume_source_, SD_EVENT_ONESHOT) >= 0)
    sd_event_source_set_enabled(accept_source_, SD_EVENT_OFF);
}

int Server::on_resume(sd_event_source*, std::uint64_t, void* data) {
  sd_event_source_set_enabled(static_cast<Server*>(data)->accept_source_, SD_EVENT_ON);
  return 0;
}

void Server::reap_later() { sd_event_source_set_enabled(reap_source_, SD_EVENT_ONESHOT); }

int Server::on_reap(sd_event_source*, void* data) {
  static_cast<Server*>(data)->reap();
  return 0;
}

void Server::reap() {
  std::erase_if(connections_, [&](const auto& connection) {
    if (!connection->dead()) return false;
    if (!connection->authenticated()) ++stats_.unauthenticated_total;
    return true;
  });
}

}  // namespace swapd::bus
