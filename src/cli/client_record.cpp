// The connection while it records: lines arrive as signals, and the user may end it at any moment.
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "cli/client.h"
#include "cli/failure.h"

namespace swapd::cli {

namespace {

// Until the connection wants attention, `stop` is readable, or the time is up.
void wait(sd_bus* bus, int stop, std::optional<std::chrono::steady_clock::time_point> until) {
  using std::chrono::microseconds;
  std::optional<std::chrono::steady_clock::duration> left;
  if (until) left = std::max(*until - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration::zero());
  std::uint64_t at_us = UINT64_MAX;  // CLOCK_MONOTONIC
  if (sd_bus_get_timeout(bus, &at_us) >= 0 && at_us != UINT64_MAX) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto due = std::max<std::chrono::steady_clock::duration>(microseconds(at_us) - now, microseconds(0));
    left = left ? std::min(*left, due) : due;
  }
  timespec limit{};
  if (left) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(*left);
    limit = {whole.count(), std::chrono::nanoseconds(*left - whole).count()};
  }
  const int events = sd_bus_get_events(bus);
  std::array<pollfd, 2> fds{pollfd{sd_bus_get_fd(bus), static_cast<short>(events < 0 ? 0 : events), 0},
                            pollfd{stop, POLLIN, 0}};
  (void)::ppoll(fds.data(), fds.size(), left ? &limit : nullptr, nullptr);
}

bool readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return fd >= 0 && ::poll(&one, 1, 0) > 0;
}

}  // namespace

Status Client::order_record(bool on) {
  Result<Message> message = new_call("Record");
  if (!message) return std::move(message).error();
  if (const int r = sd_bus_message_append(message->get(), "b", on ? 1 : 0); r < 0) return broken(r);
  Result<Message> answer = call(std::move(message).value());
  if (!answer) return std::move(answer).error();
  return Done{};
}

Result<Client::Ended> Client::record(const std::function<bool(std::string_view)>& sink, int stop,
                                     std::optional<std::chrono::steady_clock::time_point> until) {
  if (Status begun = order_record(true); !begun) return std::move(begun).error();
  bool asked = false;
  for (;;) {
    sd_bus_message* raw = nullptr;
    const int r = sd_bus_process(bus_.get(), &raw);
    const Message message(raw);
    if (r == -ECONNRESET || r == -ENOTCONN) return Ended::gone;
    if (r < 0) return broken(r);
    if (message && sd_bus_message_is_signal(raw, interface_name, "Recorded") > 0) {
      const char* lines = nullptr;
      if (sd_bus_message_read(raw, "s", &lines) < 0) return broken(-EBADMSG);
      if (!sink(lines)) return Ended::refused;
    } else if (message && sd_bus_message_is_signal(raw, "org.freedesktop.DBus.Local", "Disconnected") > 0) {
      return Ended::gone;
    }
    if (!asked && (readable(stop) || (until && std::chrono::steady_clock::now() >= *until))) {
      asked = true;
      // The answer comes behind the last lines: with it, all of them are here.
      (void)order_record(false);  // where swapd has gone, the next step says so
      continue;
    }
    if (r > 0) continue;  // more may be queued
    if (asked) return Ended::asked;
    wait(bus_.get(), stop, until);
  }
}

}  // namespace swapd::cli
