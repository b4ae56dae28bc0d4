#include "bus/connection.h"

#include <utility>

namespace swapd::bus {

Server::Connection::~Connection() {
  sd_event_source_disable_unref(deadline_);
  sd_event_source_disable_unref(drain_);
  if (bus_ == nullptr) return;
  server_.manager_.forget(bus_);
  sd_bus_slot_unref(filter_);
  for (sd_bus_slot* slot : objects_) sd_bus_slot_unref(slot);
  sd_bus_detach_event(bus_);
  sd_bus_close_unref(bus_);
}

Status Server::Connection::start(Fd fd) {
  const auto failed = [](int r) { return Error(-r, "serving a connection"); };
  if (const int r = sd_bus_new(&bus_); r < 0) return failed(r);
  if (const int r = sd_bus_set_fd(bus_, fd.get(), fd.get()); r < 0) return failed(r);
  static_cast<void>(fd.release());  // the connection closes it
  // EXTERNAL authentication against the credentials of the socket; descriptors may be passed (Launch).
  if (const int r = sd_bus_set_server(bus_, 1, server_.id_); r < 0) return failed(r);
  if (const int r = sd_bus_negotiate_fds(bus_, 1); r < 0) return failed(r);
  if (const int r = sd_bus_set_description(bus_, "private"); r < 0) return failed(r);
  if (const int r = sd_bus_set_connected_signal(bus_, 1); r < 0) return failed(r);
  // Else the end of the event loop flushes, and a client that does not read keeps swapd from its end.
  if (const int r = sd_bus_set_close_on_exit(bus_, 0); r < 0) return failed(r);
  if (const int r = sd_bus_start(bus_); r < 0) return failed(r);
  if (const int r = sd_bus_attach_event(bus_, server_.loop_, SD_EVENT_PRIORITY_NORMAL); r < 0) return failed(r);
  // The filter sees every message, and the Connected and Disconnected that sd-bus itself makes.
  if (const int r = sd_bus_add_filter(bus_, &filter_, on_message, this); r < 0) return failed(r);
  if (Status attached = server_.manager_.attach(bus_, objects_); !attached) return attached;
  sd_event_now(server_.loop_, CLOCK_MONOTONIC, &last_active_us_);
  const int r = sd_event_add_time_relative(server_.loop_, &deadline_, CLOCK_MONOTONIC,
                                           server_.limits_.authenticate_within_us, 0, on_deadline, this);
  if (r < 0) return failed(r);
  return Done{};
}

void Server::Connection::end() {
  dead_ = true;
  server_.reap_later();
}

int Server::Connection::on_message(sd_bus_message* message, void* data, sd_bus_error*) {
  auto& self = *static_cast<Connection*>(data);
  if (sd_bus_message_is_signal(message, "org.freedesktop.DBus.Local", "Disconnected") > 0) {
    self.end();
    return 1;
  }
  if (sd_bus_message_is_signal(message, "org.freedesktop.DBus.Local", "Connected") > 0) {
    self.authenticated_ = true;
    sd_event_source_set_enabled(self.deadline_, SD_EVENT_OFF);
    sd_event_add_defer(self.server_.loop_, &self.drain_, on_authenticated, &self);
  }
  sd_event_now(self.server_.loop_, CLOCK_MONOTONIC, &self.last_active_us_);
  // A client that asks and never reads the answers would have us keep them for ever.
  std::uint64_t queued = 0;
  if (sd_bus_get_n_queued_write(self.bus_, &queued) >= 0 && queued > 2 * self.server_.limits_.queued_messages) {
    self.end();
    return 1;
  }
  if (self.dead_) return 1;
  // Properties and introspection too.
  std::uint8_t type = 0;
  if (sd_bus_message_get_type(message, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL) return 0;
  return self.server_.manager_.arrived(message, self.user_) ? 1 : 0;
}

// Bytes that a client sent right behind its BEGIN may have been read together with it. sd-bus keeps those bytes, but
// looks at them only when more arrive: a client that waits for its answer first would wait for ever.
int Server::Connection::on_authenticated(sd_event_source*, void* data) {
  auto& self = *static_cast<Connection*>(data);
  int r = 1;
  while (r > 0 && !self.dead_) r = sd_bus_process(self.bus_, nullptr);
  if (r < 0) self.end();
  return 0;
}

int Server::Connection::on_deadline(sd_event_source*, std::uint64_t, void* data) {
  auto& self = *static_cast<Connection*>(data);
  if (!self.authenticated_) self.end();
  return 0;
}

}  // namespace swapd::bus
