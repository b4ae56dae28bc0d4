#include "bus/manager.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <utility>

#include "bus/json.h"
#include "bus/vtables.h"

namespace swapd::bus {

Manager::Manager(Backend& backend, std::uint64_t max_queued, std::uint32_t requests)
    : backend_(backend),
      max_queued_(max_queued),
      quota_(requests),
      authorization_([this](sd_bus_message* call, const Caller& caller, Right right, Authority::Verdict verdict,
                            const Error& why) { refused(call, caller, right, verdict, why); }) {}

Manager::~Manager() {
  if (collecting_ != EventDetail::none) backend_.follow_events(EventDetail::none, {});
  end_recording();
}

Status Manager::attach(sd_bus* bus, std::vector<sd_bus_slot*>& slots) {
  const int r = add_objects(bus, *this, slots);
  if (r < 0) return Error(-r, "adding the objects to a connection");
  return Done{};
}

namespace {

std::string_view text_of(const char* may_be_null) { return may_be_null == nullptr ? "" : may_be_null; }

// Which objects there are below ours, and what they are: whatever sd-bus itself answers there tells something of it, an
// error too. The methods of a process look to their rights themselves, whether there is such a process or not.
bool shows_objects(sd_bus_message* call) {
  const std::string_view path = text_of(sd_bus_message_get_path(call));
  const std::string_view interface = text_of(sd_bus_message_get_interface(call));
  if (path == object_path) return interface == "org.freedesktop.DBus.ObjectManager";
  return path.starts_with(std::string(object_path) + "/") && interface != process_interface;
}

// sd-bus answers it: nothing is changed by it.
bool only_looks(sd_bus_message* call) {
  return text_of(sd_bus_message_get_interface(call)).starts_with("org.freedesktop.DBus.");
}

}  // namespace

bool Manager::arrived(sd_bus_message* call, std::uint32_t uid) {
  constexpr auto fresh = std::chrono::milliseconds(100);  // who asks for each property of each object asks quickly
  if (tree_ && (!only_looks(call) || SteadyClock().now() - seen_ > fresh)) tree_.reset();
  itself_.reset();
  const bool again = authorization_.begin(call);  // it was counted when it came first
  if (!again && !quota_.take(uid, SteadyClock().now())) {
    (void)sd_bus_reply_method_errorf(call, error_name::limits_exceeded,
                                     "too many requests: user %u may make %u a second ([quota] requests in the policy)",
                                     uid, quota_.requests());
    return true;
  }
  if (!shows_objects(call)) return false;
  const Caller who = authorization_.caller(call, uid);
  if (who.may(Right::view)) return false;
  const Error refusal(EACCES, "the objects show what is other users': only root may ask for them");
  if (!authorization_.ask(call, who, refusal))
    (void)sd_bus_reply_method_errorf(call, error_name::access_denied, "%s", refusal.context().c_str());
  return true;
}

const Tree& Manager::tree() {
  if (!tree_) {
    tree_ = objects_now(backend_);
    seen_ = SteadyClock().now();
  }
  return *tree_;
}

const Object& Manager::itself() {
  if (!itself_) itself_ = manager_now(backend_);
  return *itself_;
}

void Manager::refused(sd_bus_message* call, const Caller& caller, Right right, Authority::Verdict verdict,
                      const Error& why) {
  using Verdict = Authority::Verdict;
  const std::string wanted(action(right));
  std::string line = why.context();
  if (verdict == Verdict::denied) line += "; polkit does not allow " + wanted;
  if (verdict == Verdict::challenge)
    line += "; polkit would ask for a password (" + wanted +
            "), which this client does not let it, or there is nobody to ask";
  if (verdict == Verdict::busy) line += "; this user has too many questions before polkit";
  const char* name = verdict == Verdict::challenge ? error_name::needs_password
                     : verdict == Verdict::busy    ? error_name::limits_exceeded
                                                   : error_name::access_denied;
  (void)sd_bus_reply_method_errorf(call, name, "%s", valid_utf8(line).c_str());
  // The methods that are about a process have its id in their path, or in front.
  auto pid = static_cast<std::uint32_t>(process_of(text_of(sd_bus_message_get_path(call))));
  if (pid == 0 && (sd_bus_message_rewind(call, 1) < 0 || sd_bus_message_read(call, "u", &pid) <= 0 || pid > INT32_MAX))
    pid = 0;
  std::string member = sd_bus_message_get_member(call);
  std::ranges::transform(member, member.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  backend_.refused(member, static_cast<pid_t>(pid), caller, Error(why.code(), line));
}

void Manager::forget(sd_bus* bus) {
  authorization_.forget(bus);
  std::erase_if(followers_, [&](const Follower& f) { return f.client.bus == bus; });
  subscribers_.forget(bus);
  update_backend();
  if (recorder_.bus != bus) return;
  recorder_.bus = nullptr;  // it gets nothing more
  backend_.end_recording();
}

void Manager::forget(sd_bus* bus, std::string_view name) {
  const Recipient client{bus, std::string(name)};
  follow(client, false);
  subscribe(client, 0, false);
  if (recorder_ == client) end_recording();
}

bool Manager::follows(const sd_bus* bus) const {
  return recorder_.bus == bus || subscribers_.has(bus) ||
         std::ranges::any_of(followers_, [&](const Follower& f) { return f.client.bus == bus; });
}

void Manager::follow(const Recipient& client, bool on) {
  const auto same = [&](const Follower& f) { return f.client == client; };
  const bool known = std::ranges::any_of(followers_, same);
  if (on && !known) followers_.push_back({client, 0});
  if (!on && known) std::erase_if(followers_, same);
  update_backend();
}

void Manager::subscribe(const Recipient& client, std::uint32_t uid, bool on) {
  if (on)
    subscribers_.add(client, uid);
  else
    subscribers_.remove(client);
  update_backend();
}

// Collecting events costs the engine something: only while somebody wants them.
void Manager::update_backend() {
  const EventDetail wanted = !followers_.empty()     ? EventDetail::all
                             : !subscribers_.empty() ? EventDetail::decisions
                                                     : EventDetail::none;
  if (wanted == collecting_) return;
  collecting_ = wanted;
  if (wanted == EventDetail::none)
    backend_.follow_events(wanted, {});
  else
    backend_.follow_events(wanted, [this](const EventView& event) { tell(event); });
}

void Manager::tell(const EventView& event) {
  subscribers_.tell(event);
  if (followers_.empty()) return;
  const std::string line = event_json(event);
  for (Follower& follower : followers_) {
    const std::uint64_t waiting = queued(follower.client);
    if (waiting == UINT64_MAX) continue;  // closing; forget() comes
    if (waiting < max_queued_ && follower.missed > 0) {
      EventView lost;
      lost.time = event.time;
      lost.type = "events-lost";
      lost.numbers["count"] = static_cast<double>(follower.missed);
      if (send_line(follower.client, "Event", event_json(lost))) follower.missed = 0;
    }
    if (waiting >= max_queued_ || !send_line(follower.client, "Event", line)) {
      ++follower.missed;
      ++dropped_;
    }
  }
}

Status Manager::record(const Recipient& client) {
  Status begun = backend_.record([this](std::string_view lines) { return send_recorded(lines); });
  if (begun) recorder_ = client;
  return begun;
}

void Manager::end_recording() {
  if (recorder_.bus == nullptr) return;
  backend_.end_recording();
  recorder_.bus = nullptr;
}

bool Manager::send_recorded(std::string_view lines) const {
  if (recorder_.bus == nullptr) return false;
  if (queued(recorder_) >= max_queued_ / 2) return false;  // a piece is larger than an event
  return lines.empty() || send_line(recorder_, "Recorded", std::string(lines));
}

bool Manager::send_line(const Recipient& to, const char* signal, const std::string& line) {
  const Message message = new_signal(to, object_path, interface_name, signal);
  return message && sd_bus_message_append(message.get(), "s", line.c_str()) >= 0 && send(to, message);
}

}  // namespace swapd::bus
