// The object /org/swapd1 with interface org.swapd1.Manager: the commands and snapshots of a Backend as D-Bus methods.
//
// One Manager serves any number of connections: attach() puts its vtable on each, be it a peer of the private socket or
// a message bus. Each call's sender is asked of sd-bus (the peer's credentials on a direct connection, the sender's on
// a bus), so nothing here depends on the kind of connection.
//
// Below it are the processes, classes and resources (objects.h); clients that called Subscribe are told of them
// (subscribers.h). Events go only to clients that called FollowEvents. A follower that does not read is never waited
// for: past `max_queued` messages its events are dropped and counted, and when it reads again it is told how many it
// missed. A recorder gets the recording's lines in the same way; there the backend counts what was lost.
#pragma once

#include <systemd/sd-bus.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "bus/authorization.h"
#include "bus/backend.h"
#include "bus/objects.h"
#include "bus/polkit.h"
#include "bus/request_quota.h"
#include "bus/subscribers.h"
#include "bus/wire.h"

namespace swapd::bus {

namespace error_name {
inline constexpr const char* invalid_argument = "org.swapd1.Error.InvalidArgument";      // EINVAL
inline constexpr const char* not_found = "org.swapd1.Error.NotFound";                    // ENOENT, ESRCH
inline constexpr const char* failed = "org.swapd1.Error.Failed";                         // all else
inline constexpr const char* access_denied = "org.freedesktop.DBus.Error.AccessDenied";  // EACCES, EPERM
inline constexpr const char* needs_password = "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired";
inline constexpr const char* limits_exceeded = "org.freedesktop.DBus.Error.LimitsExceeded";
}  // namespace error_name

class Manager {
 public:
  // requests: a second, of one user but root; 0: no limit.
  explicit Manager(Backend& backend, std::uint64_t max_queued = 1024, std::uint32_t requests = 0);
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager();

  // The slots hold the objects on the bus: unref them before the Manager or the connection goes.
  [[nodiscard]] Status attach(sd_bus* bus, std::vector<sd_bus_slot*>& slots);
  // On this message bus, callers who are refused something get it where this says so. Null: no longer.
  void use(sd_bus* bus, Authority* authority) { authorization_.use(bus, authority); }
  // This call will not be answered after all: its grant is dropped.
  void drop(const sd_bus_message* call) { authorization_.drop(call); }
  // The connection is about to go: its followers with it.
  void forget(sd_bus* bus);
  // This client of it has gone.
  void forget(sd_bus* bus, std::string_view name);
  [[nodiscard]] bool follows(const sd_bus* bus) const;
  // A call of this user has come, to whichever interface; true: it has been answered, or will be, and goes no further.
  [[nodiscard]] bool arrived(sd_bus_message* call, std::uint32_t uid);
  [[nodiscard]] std::uint64_t dropped_events() const { return dropped_ + subscribers_.dropped(); }

 private:
  struct Follower {
    Recipient client;
    std::uint64_t missed = 0;  // since the last event that went out
  };
  friend struct Methods;

  void refused(sd_bus_message* call, const Caller& caller, Right right, Authority::Verdict verdict, const Error& why);

  // The objects as they are, or as they were a moment ago if no change was asked for since.
  [[nodiscard]] const Tree& tree();
  [[nodiscard]] const Object& itself();
  void has_changed() { tree_.reset(); }

  void subscribe(const Recipient& client, std::uint32_t uid, bool on);
  void follow(const Recipient& client, bool on);
  void tell(const EventView& event);
  [[nodiscard]] Status record(const Recipient& client);
  void end_recording();
  [[nodiscard]] bool send_recorded(std::string_view lines) const;
  [[nodiscard]] static bool send_line(const Recipient& to, const char* signal, const std::string& line);
  void update_backend();

  Backend& backend_;
  std::uint64_t max_queued_;
  RequestQuota quota_;
  Authorization authorization_;
  std::vector<Follower> followers_;
  Subscribers subscribers_{backend_, max_queued_};
  Recipient recorder_;  // bus: none, no recording runs
  std::optional<Tree> tree_;
  Time seen_{};                   // tree_ is of then
  std::optional<Object> itself_;  // while a call is answered
  std::uint64_t dropped_ = 0;
  EventDetail collecting_ = EventDetail::none;
};

}  // namespace swapd::bus
