// swapd's private socket: D-Bus spoken directly to each client, without a message bus, as systemd does on its own.
//
// Root and the owner of the socket's file may connect; any other user's connection is closed at once, and counted. A
// client has a few seconds to authenticate. One that sends what is not D-Bus, or reads none of its answers, is dropped
// alone. When all places are taken a newcomer gets the place of the oldest connection that has not authenticated, else
// of the one that has been idle the longest; a client that follows events keeps its place, but for root. Root's
// connections give way to root only. So idle connections lock no client out. Runs wholly on the event loop's thread.
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bus/manager.h"
#include "bus/socket.h"

namespace swapd::bus {

struct ServerLimits {
  std::size_t connections = 64;
  std::uint64_t authenticate_within_us = 5'000'000;
  std::uint64_t queued_messages =
      1024;                    // per connection; a follower loses events past it, twice that ends the connection
  std::uint32_t requests = 0;  // a second, of one user but root; 0: no limit
};

struct ServerStats {
  std::uint64_t connections = 0;
  std::uint64_t accepted_total = 0;
  std::uint64_t refused_total = 0;          // neither root nor the owner, or no place
  std::uint64_t unauthenticated_total = 0;  // dropped: time was up, or not D-Bus
  std::uint64_t evicted_total = 0;          // gave their place to another
  std::uint64_t dropped_events_total = 0;
};

class Server {
 public:
  Server(sd_event* loop, Backend& backend, std::string socket_path, ServerLimits limits = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Creates the socket and serves it from the event loop on. The error's context is a line for the user.
  [[nodiscard]] Status listen();
  [[nodiscard]] ServerStats stats() const;
  // The manager that it serves, for other connections.
  [[nodiscard]] Manager& manager() { return manager_; }

 private:
  class Connection;

  static int on_accept(sd_event_source* source, int fd, std::uint32_t events, void* data);
  static int on_resume(sd_event_source* source, std::uint64_t now_us, void* data);
  static int on_reap(sd_event_source* source, void* data);

  void accept_all();
  void admit(Fd fd);
  [[nodiscard]] bool make_place(uid_t newcomer);
  void pause_accepting(std::uint64_t pause_us);
  // A connection is never destroyed inside one of its own callbacks.
  void reap_later();
  void reap();

  sd_event* loop_;
  Manager manager_;
  std::string path_;
  ServerLimits limits_;
  ServerStats stats_;
  sd_id128_t id_{};
  std::optional<ListeningSocket> socket_;
  sd_event_source* accept_source_ = nullptr;
  sd_event_source* resume_source_ = nullptr;
  sd_event_source* reap_source_ = nullptr;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace swapd::bus
