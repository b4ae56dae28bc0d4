// The same object on a message bus, as org.swapd1 (dbus-daemon(1), sd-bus(3)).
//
// The bus names the caller. Root may do what it may on the private socket. Other users may ask for the status, and for
// what polkit grants them (Polkit); where there is no polkit, they may manage their own processes. A client that leaves
// the bus stops following.
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "bus/manager.h"

namespace swapd::bus {

inline constexpr const char* bus_name = "org.swapd1";

class MessageBus {
 public:
  enum class Which : std::uint8_t { system, session };
  // lost: the connection has ended; what the bus said is its argument.
  MessageBus(sd_event* loop, Manager& manager, std::function<void(const std::string&)> lost);
  MessageBus(const MessageBus&) = delete;
  MessageBus& operator=(const MessageBus&) = delete;
  ~MessageBus();

  // Connects, takes the name, and serves from the event loop on. The error's context is a line for the user: no bus, a
  // policy that gives us no name, or another program that has it.
  [[nodiscard]] Status serve(Which which);

 private:
  static int on_message(sd_bus_message* message, void* data, sd_bus_error* error);
  static int on_left(sd_bus_message* message, void* data, sd_bus_error* error);

  sd_event* loop_;
  Manager& manager_;
  std::function<void(const std::string&)> lost_;
  sd_bus* bus_ = nullptr;
  std::optional<Polkit> polkit_;
  std::vector<sd_bus_slot*> objects_;
  sd_bus_slot* filter_ = nullptr;
  sd_bus_slot* leavers_ = nullptr;
};

}  // namespace swapd::bus
