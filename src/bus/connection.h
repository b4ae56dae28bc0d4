// One client of the private socket: its D-Bus connection, the object on it, and its time to authenticate.
#pragma once

#include "bus/server.h"

namespace swapd::bus {

class Server::Connection {
 public:
  Connection(Server& server, uid_t user) : server_(server), user_(user) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  [[nodiscard]] Status start(Fd fd);
  [[nodiscard]] bool dead() const { return dead_; }
  // True also after the end of one that was.
  [[nodiscard]] bool authenticated() const { return authenticated_; }
  [[nodiscard]] uid_t user() const { return user_; }
  [[nodiscard]] bool follows() const { return server_.manager_.follows(bus_); }
  [[nodiscard]] std::uint64_t last_active_us() const { return last_active_us_; }
  void end();

 private:
  static int on_message(sd_bus_message* message, void* data, sd_bus_error* error);
  static int on_authenticated(sd_event_source* source, void* data);
  static int on_deadline(sd_event_source* source, std::uint64_t now_us, void* data);

  Server& server_;
  uid_t user_;
  sd_bus* bus_ = nullptr;
  std::vector<sd_bus_slot*> objects_;
  sd_bus_slot* filter_ = nullptr;
  sd_event_source* deadline_ = nullptr;
  sd_event_source* drain_ = nullptr;
  std::uint64_t last_active_us_ = 0;
  bool authenticated_ = false;
  bool dead_ = false;
};

}  // namespace swapd::bus
