// The clients that asked with Subscribe: they hear of donations as they happen, and four times a second
// of objects that came, went and changed. Without subscribers nothing is looked at. One that does not read is never
// waited for: what has changed it is told when it reads again; of the rest it is told how much it missed.
#pragma once

#include <systemd/sd-event.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bus/objects.h"
#include "bus/wire.h"

namespace swapd::bus {

class Subscribers {
 public:
  Subscribers(Backend& backend, std::uint64_t max_queued) : backend_(backend), max_queued_(max_queued) {}
  Subscribers(const Subscribers&) = delete;
  Subscribers& operator=(const Subscribers&) = delete;
  ~Subscribers() { sd_event_source_disable_unref(look_); }

  void add(const Recipient& client, std::uint32_t uid);
  void remove(const Recipient& client);
  void forget(const sd_bus* bus);
  // For one more of this user, or for this one, who is here already. Others never take root's places.
  [[nodiscard]] bool has_room(const Recipient& client, std::uint32_t uid) const;
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] bool has(const sd_bus* bus) const;
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  void tell(const EventView& event);

 private:
  static constexpr std::ptrdiff_t max_of_user = 16, max_of_users = 64, max_of_root = 64;
  struct Subscriber {
    Recipient client;
    std::uint32_t uid = 0;
    std::shared_ptr<const Tree> told;  // what it knows; the Manager among them
    std::uint64_t missed = 0;          // signals, since the last one that went out
  };
  static int on_look(sd_event_source* source, std::uint64_t now_us, void* data);
  void look();
  void arm(sd_event* loop);
  void rest_if_empty();
  [[nodiscard]] std::shared_ptr<const Tree> tree_now();
  void tell_changes(Subscriber& subscriber, const std::shared_ptr<const Tree>& now) const;
  [[nodiscard]] bool reads(Subscriber& subscriber);

  Backend& backend_;
  std::uint64_t max_queued_;
  std::vector<Subscriber> all_;
  sd_event_source* look_ = nullptr;
  std::uint64_t dropped_ = 0;
};

}  // namespace swapd::bus
