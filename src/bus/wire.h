// Values and signals as D-Bus messages (sd_bus_message_append(3)). Errors are negative errnos, as sd-bus has them.
#pragma once

#include <systemd/sd-bus.h>

#include <memory>
#include <span>
#include <string>

#include "bus/objects.h"

namespace swapd::bus {

struct UnrefMessage {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Message = std::unique_ptr<sd_bus_message, UnrefMessage>;

// The one client that a signal goes to.
struct Recipient {
  sd_bus* bus = nullptr;
  std::string name;  // on a message bus its unique name; empty on a direct connection
  bool operator==(const Recipient&) const = default;
};

// The value alone, as a property's getter has it.
[[nodiscard]] int append(sd_bus_message* message, const Value& value);

// Null: there is no memory, or the connection is closing.
[[nodiscard]] Message new_signal(const Recipient& to, const char* path, const char* interface, const char* member);
// Those of org.freedesktop.DBus.Properties and of org.freedesktop.DBus.ObjectManager at `object_path`.
[[nodiscard]] Message properties_changed(const Recipient& to, const std::string& path, const Object& object,
                                         std::span<const std::string> names);
[[nodiscard]] Message interfaces_added(const Recipient& to, const std::string& path, const Object& object);
[[nodiscard]] Message interfaces_removed(const Recipient& to, const std::string& path, const char* interface);
[[nodiscard]] bool send(const Recipient& to, const Message& message);
// Messages that wait to be written; UINT64_MAX: the connection is closing.
[[nodiscard]] std::uint64_t queued(const Recipient& to);

}  // namespace swapd::bus
