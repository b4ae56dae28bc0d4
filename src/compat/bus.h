// sd-bus objects that end with their scope, and errors that a D-Bus caller sees. Source: sd-bus(3).
#pragma once

#include <systemd/sd-bus.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace swapd::compat {

struct Unref {
  void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
  void operator()(sd_bus_slot* slot) const { sd_bus_slot_unref(slot); }
  void operator()(sd_bus_creds* creds) const { sd_bus_creds_unref(creds); }
  void operator()(sd_event* loop) const { sd_event_unref(loop); }
  void operator()(sd_event_source* source) const { sd_event_source_disable_unref(source); }
};
using Bus = std::unique_ptr<sd_bus, Unref>;
using Message = std::unique_ptr<sd_bus_message, Unref>;
using Slot = std::unique_ptr<sd_bus_slot, Unref>;
using Credentials = std::unique_ptr<sd_bus_creds, Unref>;
using Loop = std::unique_ptr<sd_event, Unref>;
using EventSource = std::unique_ptr<sd_event_source, Unref>;

// A caller's mistake, or what it may not do, as D-Bus has it (org.freedesktop.DBus.Error…).
inline int refuse(sd_bus_error* error, const char* name, const std::string& why) {
  return sd_bus_error_set(error, name, why.c_str());
}
inline int denied(sd_bus_error* error, const std::string& why) {
  return refuse(error, SD_BUS_ERROR_ACCESS_DENIED, why);
}

// The error of a call of ours. r: its negative errno.
inline Error failure(int r, const sd_bus_error& error) {
  return {-r, error.message != nullptr ? error.message : "D-Bus"};
}

}  // namespace swapd::compat
