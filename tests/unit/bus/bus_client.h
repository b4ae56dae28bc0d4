// A D-Bus client of the test's own, so that the server is not tested against swapctl's idea of it.
#pragma once

#include <gtest/gtest.h>
#include <systemd/sd-bus.h>

#include <memory>
#include <string>

#include "bus/manager.h"
#include "fakes/bus_fixture.h"

namespace swapd::bus {

class BusClient {
 public:
  struct Unref {
    void operator()(sd_bus_message* m) const { sd_bus_message_unref(m); }
  };
  using Message = std::unique_ptr<sd_bus_message, Unref>;
  struct Answer {
    Message message;
    std::string error;  // "NAME: TEXT"
  };

  explicit BusClient(const fakes::BusThread& bus) {
    Fd fd = bus.raw();
    EXPECT_TRUE(fd.valid());
    EXPECT_GE(sd_bus_new(&bus_), 0);
    EXPECT_GE(sd_bus_set_fd(bus_, fd.get(), fd.get()), 0);
    static_cast<void>(fd.release());
    EXPECT_GE(sd_bus_negotiate_fds(bus_, 1), 0);
    EXPECT_GE(sd_bus_start(bus_), 0);
  }
  BusClient(const BusClient&) = delete;
  BusClient& operator=(const BusClient&) = delete;
  ~BusClient() { sd_bus_close_unref(bus_); }

  template <typename... Args>
  Answer call(const char* method, const char* types, Args... args) {
    return call_on(interface_name, method, types, args...);
  }
  // The error, empty where there was none.
  template <typename... Args>
  std::string command(const char* method, const char* types, Args... args) {
    return call(method, types, args...).error;
  }
  // The text of the answer.
  template <typename... Args>
  std::string text(const char* method, const char* types = "", Args... args) {
    const Answer answer = call(method, types, args...);
    EXPECT_EQ(answer.error, "");
    const char* text = "";
    if (answer.message) {
      EXPECT_GE(sd_bus_message_read(answer.message.get(), "s", &text), 0);
    }
    return text;
  }
  std::string property(const char* name, const char* type) {
    const Answer answer = call_on("org.freedesktop.DBus.Properties", "Get", "ss", interface_name, name);
    if (!answer.message) return answer.error;
    if (*type == 'u') {
      std::uint32_t number = 0;
      EXPECT_GE(sd_bus_message_read(answer.message.get(), "v", type, &number), 0);
      return std::to_string(number);
    }
    const char* text = "";
    EXPECT_GE(sd_bus_message_read(answer.message.get(), "v", type, &text), 0);
    return text;
  }
  std::string introspect(const std::string& path = object_path) {
    const Answer answer = call_at(path, "org.freedesktop.DBus.Introspectable", "Introspect", "");
    const char* text = "";
    if (answer.message) {
      EXPECT_GE(sd_bus_message_read(answer.message.get(), "s", &text), 0);
    }
    return text;
  }
  // Waits for the next Event signal; empty after ten seconds without.
  std::string next_event() { return next_signal("Event"); }
  std::string next_signal(const char* name) {
    for (;;) {
      sd_bus_message* raw = nullptr;
      const int r = sd_bus_process(bus_, &raw);
      const Message message(raw);
      if (r < 0) return "";
      const char* line = nullptr;
      if (raw != nullptr && sd_bus_message_is_signal(raw, interface_name, name) > 0)
        return sd_bus_message_read(raw, "s", &line) < 0 ? "" : line;
      if (r == 0 && sd_bus_wait(bus_, 10'000'000) <= 0) return "";
    }
  }
  // Events that have arrived and were not read.
  int queued_events() {
    int events = 0;
    for (;;) {
      sd_bus_message* raw = nullptr;
      const int r = sd_bus_process(bus_, &raw);
      const Message message(raw);
      if (raw != nullptr && sd_bus_message_is_signal(raw, interface_name, "Event") > 0) ++events;
      if (r <= 0) return events;
    }
  }

  template <typename... Args>
  Answer call_at(const std::string& path, const char* interface, const char* method, const char* types, Args... args) {
    sd_bus_error error{};
    sd_bus_message* raw = nullptr;
    const int r = sd_bus_call_method(bus_, nullptr, path.c_str(), interface, method, &error, &raw, types, args...);
    Answer answer{Message(raw), ""};
    if (r < 0)
      answer.error = sd_bus_error_is_set(&error) != 0 ? std::string(error.name) + ": " + error.message : "no answer";
    sd_bus_error_free(&error);
    return answer;
  }
  // The next signal of that name, of any interface and path; null after ten seconds without. Others are dropped.
  Message next(const char* member) {
    for (;;) {
      sd_bus_message* raw = nullptr;
      const int r = sd_bus_process(bus_, &raw);
      Message message(raw);
      if (r < 0) return nullptr;
      if (raw != nullptr && sd_bus_message_is_signal(raw, nullptr, member) > 0) return message;
      if (r == 0 && sd_bus_wait(bus_, 10'000'000) <= 0) return nullptr;
    }
  }

 private:
  template <typename... Args>
  Answer call_on(const char* interface, const char* method, const char* types, Args... args) {
    return call_at(object_path, interface, method, types, args...);
  }

  sd_bus* bus_ = nullptr;
};

}  // namespace swapd::bus
