#include "bus/message_bus.h"

#include <cstdint>
#include <system_error>
#include <utility>

namespace swapd::bus {
namespace {

std::int64_t sender_of(sd_bus_message* call) {
  sd_bus_creds* creds = nullptr;
  uid_t uid = 0;
  int r = sd_bus_query_sender_creds(call, SD_BUS_CREDS_EUID, &creds);
  if (r >= 0) r = sd_bus_creds_get_euid(creds, &uid);
  sd_bus_creds_unref(creds);
  return r < 0 ? -1 : static_cast<std::int64_t>(uid);
}

}  // namespace

MessageBus::MessageBus(sd_event* loop, Manager& manager, std::function<void(const std::string&)> lost)
    : loop_(loop), manager_(manager), lost_(std::move(lost)) {}

MessageBus::~MessageBus() {
  if (bus_ == nullptr) return;
  manager_.use(nullptr, nullptr);
  polkit_.reset();
  manager_.forget(bus_);
  for (sd_bus_slot* slot : {filter_, leavers_}) sd_bus_slot_unref(slot);
  for (sd_bus_slot* slot : objects_) sd_bus_slot_unref(slot);
  sd_bus_detach_event(bus_);
  sd_bus_close_unref(bus_);
}

Status MessageBus::serve(Which which) {
  const std::string name = which == Which::system ? "system" : "session";
  const auto failed = [&](int r, const std::string& what) {
    return Error(-r, "--bus " + name + ": " + what + ": " + std::generic_category().message(-r) +
                         "; use --bus none for the private socket alone");
  };
  int r = which == Which::system ? sd_bus_open_system_with_description(&bus_, "system")
                                 : sd_bus_open_user_with_description(&bus_, "session");
  if (r < 0) return failed(r, "the " + name + " bus cannot be reached");
  constexpr std::uint64_t answer_within_us = 2'000'000;  // of the bus itself, when we ask it who calls
  sd_bus_set_method_call_timeout(bus_, answer_within_us);
  sd_bus_set_exit_on_disconnect(bus_, 0);
  sd_bus_set_close_on_exit(bus_, 0);
  if (r = sd_bus_add_filter(bus_, &filter_, on_message, this); r < 0) return failed(r, "listening to it");
  if (Status attached = manager_.attach(bus_, objects_); !attached) return attached;
  polkit_.emplace(bus_, which == Which::session);
  manager_.use(bus_, &*polkit_);
  r = sd_bus_add_match(bus_, &leavers_,
                       "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                       "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg2=''",
                       on_left, this);
  if (r < 0) return failed(r, "the " + name + " bus cannot be reached");
  r = sd_bus_request_name(bus_, bus_name, 0);
  if (r == -EEXIST) return failed(r, std::string("another program has the name ") + bus_name);
  if (r < 0) return failed(r, std::string("the name ") + bus_name + " is not given to us");
  if (r = sd_bus_attach_event(bus_, loop_, SD_EVENT_PRIORITY_NORMAL); r < 0) return failed(r, "listening to it");
  return Done{};
}

int MessageBus::on_message(sd_bus_message* message, void* data, sd_bus_error*) {
  auto& self = *static_cast<MessageBus*>(data);
  if (sd_bus_message_is_signal(message, "org.freedesktop.DBus.Local", "Disconnected") > 0) {
    self.manager_.forget(self.bus_);
    self.lost_("the message bus has ended the connection");
    return 0;
  }
  std::uint8_t type = 0;
  if (sd_bus_message_get_type(message, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL) return 0;
  const std::int64_t uid = sender_of(message);
  if (uid < 0) {
    self.manager_.drop(message);
    (void)sd_bus_reply_method_errorf(message, SD_BUS_ERROR_ACCESS_DENIED, "the bus does not say who asks");
    return 1;
  }
  return self.manager_.arrived(message, static_cast<std::uint32_t>(uid)) ? 1 : 0;
}

// A unique name has no owner any more.
int MessageBus::on_left(sd_bus_message* message, void* data, sd_bus_error*) {
  auto& self = *static_cast<MessageBus*>(data);
  const char* name = nullptr;
  if (sd_bus_message_read(message, "s", &name) >= 0 && name != nullptr) self.manager_.forget(self.bus_, name);
  return 0;
}

}  // namespace swapd::bus
