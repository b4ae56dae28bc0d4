#include "bus/subscribers.h"

#include <algorithm>
#include <cmath>

namespace swapd::bus {
namespace {

constexpr std::uint64_t look_every_us = 250'000;

std::uint32_t number(const EventView& event, const char* name) {
  const auto found = event.numbers.find(name);
  return found == event.numbers.end() ? 0 : static_cast<std::uint32_t>(std::lround(found->second));
}

std::string word(const EventView& event, const char* name) {
  const auto found = event.fields.find(name);
  return found == event.fields.end() ? "" : found->second;
}

// The event as a signal of its own; null: there is none for it.
Message signal_of(const Recipient& to, const EventView& event) {
  const auto made = [&](const char* member) { return new_signal(to, object_path, interface_name, member); };
  const auto pid = static_cast<std::uint32_t>(event.pid);
  const auto tid = static_cast<std::uint32_t>(event.tid);
  Message message;
  int r = -1;
  if (event.type == "enrolled" && event.process) {
    if (message = made("Enrolled"); message) r = sd_bus_message_append(message.get(), "u", pid);
  } else if ((event.type == "released" || event.type == "exited") && event.process) {
    if (message = made("Released"); message) r = sd_bus_message_append(message.get(), "u", pid);
  } else if (event.type == "limit-reached") {
    if (message = made("LimitReached"); message)
      r = sd_bus_message_append(message.get(), "suu", word(event, "limit").c_str(), pid, tid);
  } else {
    const char* member = event.type == "inversion-found"  ? "InversionFound"
                         : event.type == "donation-begun" ? "DonationBegun"
                         : event.type == "donation-ended" ? "DonationEnded"
                         : event.type == "ineffective"    ? "DonationIneffective"
                                                          : nullptr;
    if (member == nullptr || !(message = made(member))) return nullptr;
    r = sd_bus_message_append(message.get(), "uuuus", number(event, "requester_pid"), number(event, "requester"), pid,
                              tid, word(event, "resource").c_str());
    if (r >= 0 && event.type == "donation-begun")
      r = sd_bus_message_append(message.get(), "siu", word(event, "policy").c_str(),
                                static_cast<std::int32_t>(number(event, "nice")), number(event, "rt_priority"));
    if (r >= 0 && event.type == "ineffective")
      r = sd_bus_message_append(message.get(), "s", word(event, "reason").c_str());
  }
  return r < 0 ? nullptr : std::move(message);
}

}  // namespace

bool Subscribers::has_room(const Recipient& client, std::uint32_t uid) const {
  if (std::ranges::find(all_, client, &Subscriber::client) != all_.end()) return true;
  const auto of_user = std::ranges::count(all_, uid, &Subscriber::uid);
  const auto of_root = std::ranges::count(all_, 0U, &Subscriber::uid);
  if (uid == 0) return of_root < max_of_root;
  return of_user < max_of_user && std::ssize(all_) - of_root < max_of_users;
}

void Subscribers::add(const Recipient& client, std::uint32_t uid) {
  if (std::ranges::find(all_, client, &Subscriber::client) != all_.end()) return;
  all_.push_back({.client = client, .uid = uid, .told = tree_now()});
  arm(sd_bus_get_event(client.bus));
}

void Subscribers::remove(const Recipient& client) {
  std::erase_if(all_, [&](const Subscriber& s) { return s.client == client; });
  rest_if_empty();
}

void Subscribers::forget(const sd_bus* bus) {
  std::erase_if(all_, [&](const Subscriber& s) { return s.client.bus == bus; });
  rest_if_empty();
}

bool Subscribers::has(const sd_bus* bus) const {
  return std::ranges::any_of(all_, [&](const Subscriber& s) { return s.client.bus == bus; });
}

void Subscribers::arm(sd_event* loop) {
  if (look_ == nullptr)
    (void)sd_event_add_time_relative(loop, &look_, CLOCK_MONOTONIC, look_every_us, 10'000, on_look, this);
  else
    (void)sd_event_source_set_enabled(look_, SD_EVENT_ONESHOT);
}

void Subscribers::rest_if_empty() {
  if (all_.empty() && look_ != nullptr) (void)sd_event_source_set_enabled(look_, SD_EVENT_OFF);
}

int Subscribers::on_look(sd_event_source* source, std::uint64_t, void* data) {
  static_cast<Subscribers*>(data)->look();
  (void)sd_event_source_set_time_relative(source, look_every_us);
  return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

std::shared_ptr<const Tree> Subscribers::tree_now() {
  auto tree = std::make_shared<Tree>(objects_now(backend_));
  (*tree)[object_path] = manager_now(backend_);
  return tree;
}

void Subscribers::look() {
  const std::shared_ptr<const Tree> now = tree_now();
  for (Subscriber& subscriber : all_) tell_changes(subscriber, now);
}

// As much as there is room for; the rest when there is again.
void Subscribers::tell_changes(Subscriber& subscriber, const std::shared_ptr<const Tree>& now) const {
  const Recipient& to = subscriber.client;
  const Changes found = changes(*subscriber.told, *now);
  std::vector<std::string> told;
  const auto tell = [&](const std::string& path, const auto& message) {
    if (queued(to) >= max_queued_ || !send(to, message())) return false;
    told.push_back(path);
    return true;
  };
  bool all = true;
  for (const std::string& path : found.removed)
    all = all && tell(path, [&] { return interfaces_removed(to, path, subscriber.told->at(path).interface.c_str()); });
  for (const std::string& path : found.added)
    all = all && tell(path, [&] { return interfaces_added(to, path, now->at(path)); });
  for (const auto& one : found.changed)
    all = all && tell(one.first, [&] { return properties_changed(to, one.first, now->at(one.first), one.second); });
  if (all) {
    subscriber.told = now;
    return;
  }
  if (told.empty()) return;
  auto so_far = std::make_shared<Tree>(*subscriber.told);
  for (const std::string& path : told) {
    if (const auto there = now->find(path); there != now->end())
      (*so_far)[path] = there->second;
    else
      so_far->erase(path);
  }
  subscriber.told = std::move(so_far);
}

// A client that reads again is told first what it missed.
bool Subscribers::reads(Subscriber& subscriber) {
  if (queued(subscriber.client) >= max_queued_) return false;
  if (subscriber.missed == 0) return true;
  const Message lost = new_signal(subscriber.client, object_path, interface_name, "SignalsLost");
  if (!lost || sd_bus_message_append(lost.get(), "t", subscriber.missed) < 0 || !send(subscriber.client, lost))
    return false;
  subscriber.missed = 0;
  return true;
}

void Subscribers::tell(const EventView& event) {
  for (Subscriber& subscriber : all_) {
    const Message message = signal_of(subscriber.client, event);
    if (!message) continue;
    if (reads(subscriber) && send(subscriber.client, message)) continue;
    ++subscriber.missed;
    ++dropped_;
  }
}

}  // namespace swapd::bus
