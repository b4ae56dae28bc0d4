#include "compat/swapd_client.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace swapd::compat {
namespace {

constexpr const char* name = "org.swapd1";
constexpr const char* path = "/org/swapd1";
constexpr const char* manager = "org.swapd1.Manager";
constexpr std::uint64_t patience_us = 5'000'000;

Result<Message> method(sd_bus* bus, const char* member) {
  sd_bus_message* made = nullptr;
  int r = sd_bus_message_new_method_call(bus, &made, name, path, manager, member);
  Message message(made);
  if (r >= 0) r = sd_bus_message_set_auto_start(made, 0);
  if (r < 0) return Error(-r, "D-Bus");
  return message;
}

}  // namespace

Status SwapdClient::call(const Message& message) {
  sd_bus_error error = SD_BUS_ERROR_NULL;
  const int r = sd_bus_call(bus_, message.get(), patience_us, &error, nullptr);
  Status done = Done{};
  if (r < 0) done = failure(r, error);
  sd_bus_error_free(&error);
  return done;
}

// A process that this user may not see is none of its own.
bool SwapdClient::is_managed(pid_t pid) {
  sd_bus_error error = SD_BUS_ERROR_NULL;
  std::uint32_t known = 0;
  const int r = sd_bus_get_property_trivial(bus_, name, ("/org/swapd1/process/" + std::to_string(pid)).c_str(),
                                            "org.swapd1.Process", "Pid", &error, 'u', &known);
  sd_bus_error_free(&error);
  return r >= 0;
}

Result<Message> SwapdClient::enrollment(const Fd& pidfd, bool tree, const std::string& class_name) {
  auto message = method(bus_, "EnrollPidfd");
  if (!message) return message;
  if (const int r = sd_bus_message_append(message->get(), "hbsb", pidfd.get(), tree ? 1 : 0, class_name.c_str(), 0);
      r < 0)
    return Error(-r, "D-Bus");
  return message;
}

Status SwapdClient::manage_tree(const Fd& pidfd, const std::string& class_name) {
  auto message = enrollment(pidfd, true, class_name);
  return message ? call(*message) : Status(std::move(message).error());
}

Status SwapdClient::set_nice(pid_t pid, int nice) {
  auto message = method(bus_, "Set");
  if (!message) return std::move(message).error();
  const int r = sd_bus_message_append(message->get(), "usii", static_cast<std::uint32_t>(pid), "nice", nice, 0);
  return r < 0 ? Status(Error(-r, "D-Bus")) : call(*message);
}

Status SwapdClient::release(pid_t pid) {
  auto message = method(bus_, "Release");
  if (!message) return std::move(message).error();
  const int r = sd_bus_message_append(message->get(), "u", static_cast<std::uint32_t>(pid));
  return r < 0 ? Status(Error(-r, "D-Bus")) : call(*message);
}

void SwapdClient::manage_later(Fd pidfd, const std::string& class_name) {
  Request& request = requests_.emplace_back(Request{this, std::move(pidfd), class_name, {}});
  sd_bus_message* made = nullptr;
  int r = sd_bus_message_new_method_call(bus_, &made, name, path, "org.freedesktop.DBus.Properties", "Get");
  const Message question(made);
  if (r >= 0) r = sd_bus_message_set_auto_start(made, 0);
  if (r >= 0) r = sd_bus_message_append(made, "ss", manager, "Observer");
  sd_bus_slot* slot = nullptr;
  if (r >= 0) r = sd_bus_call_async(bus_, &slot, made, on_observer, &request, patience_us);
  request.call.reset(slot);
  if (r < 0) end(request);
}

void SwapdClient::end(const Request& request) {
  requests_.remove_if([&](const Request& one) { return &one == &request; });
}

int SwapdClient::on_observer(sd_bus_message* answer, void* data, sd_bus_error*) {
  auto& request = *static_cast<Request*>(data);
  SwapdClient& self = *request.self;
  const char* observer = "";
  if (sd_bus_message_is_method_error(answer, nullptr) > 0 || sd_bus_message_read(answer, "v", "s", &observer) < 0) {
    spdlog::debug("swapd does not answer: its process is not managed");
    self.end(request);
    return 1;
  }
  const auto message = self.enrollment(request.pidfd, false, request.class_name);
  sd_bus_slot* slot = nullptr;
  if (std::string_view(observer) != "bpf" || !message ||
      sd_bus_call_async(self.bus_, &slot, message->get(), on_managed, &request, patience_us) < 0) {
    self.end(request);
    return 1;
  }
  request.call.reset(slot);
  return 1;
}

int SwapdClient::on_managed(sd_bus_message* answer, void* data, sd_bus_error*) {
  auto& request = *static_cast<Request*>(data);
  if (const sd_bus_error* error = sd_bus_message_get_error(answer); error != nullptr)
    spdlog::info("swapd does not manage it: {}", error->message != nullptr ? error->message : error->name);
  request.self->end(request);
  return 1;
}

}  // namespace swapd::compat
