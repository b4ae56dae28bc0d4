// A connection to swapd's private socket. Blocking, single-threaded, every descriptor close-on-exec.
//
// Errors come ready to print: see cli/failure.h.
#pragma once

#include <linux/filter.h>
#include <systemd/sd-bus.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/asked_priority.h"
#include "base/result.h"

namespace swapd::cli {

inline constexpr const char* default_socket = "/run/swapd/swapd.sock";

struct LaunchAnswer {
  bool install = false;
  std::vector<sock_filter> program;
};

class Client {
 public:
  [[nodiscard]] static Result<Client> connect(const std::string& path);

  // The JSON texts of docs/design.md, Contracts.
  [[nodiscard]] Result<std::string> status() { return ask("Status"); }
  [[nodiscard]] Result<std::string> processes() { return ask("Processes"); }
  [[nodiscard]] Result<std::string> graph() { return ask("Graph"); }
  [[nodiscard]] Result<std::string> policy() { return ask("Policy"); }
  [[nodiscard]] Result<std::string> classes() { return ask("Classes"); }
  [[nodiscard]] Result<std::string> why(pid_t pid);

  struct Limit {
    std::string device, key, value;  // as SetClass has them (org.swapd1(5))
  };
  // make: a new one.
  [[nodiscard]] Status set_class(const std::string& name, const std::vector<Limit>& limits, bool make);
  [[nodiscard]] Status remove_class(const std::string& name);
  // tree: with its descendants.
  [[nodiscard]] Status enroll(pid_t pid, bool tree, const std::string& class_name, bool allow_no_new_privs);
  // Until the next swapd answers.
  [[nodiscard]] Status restart();
  [[nodiscard]] Status pause() { return command("Pause"); }
  [[nodiscard]] Status resume() { return command("Resume"); }
  [[nodiscard]] Status release(pid_t pid) { return command("Release", pid); }
  [[nodiscard]] Status thaw(pid_t pid) { return command("Thaw", pid); }
  [[nodiscard]] Status set(pid_t pid, const AskedPriority& base);
  // The program to run is this process: its pidfd and the memory that it shares with swapd.
  [[nodiscard]] Result<LaunchAnswer> launch(int pidfd, int memory, const std::string& class_name,
                                            const std::string& observe);

  // Hands each event's line to `sink` until it returns false. An error where the connection ends.
  [[nodiscard]] Status follow(const std::function<bool(const std::string&)>& sink);

  // Hands the recording's lines to `sink`, several at once, until `stop` is readable (-1: never), the time is up
  // (none: never), `sink` returns false, or swapd ends; what swapd has still to say at the end included.
  enum class Ended : std::uint8_t { asked, refused, gone };
  [[nodiscard]] Result<Ended> record(const std::function<bool(std::string_view)>& sink, int stop,
                                     std::optional<std::chrono::steady_clock::time_point> until);

 private:
  static constexpr const char* interface_name = "org.swapd1.Manager";
  struct Closer {
    void operator()(sd_bus* bus) const { sd_bus_close_unref(bus); }
  };
  struct Unref {
    void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
  };
  using Message = std::unique_ptr<sd_bus_message, Unref>;

  Client(sd_bus* bus, std::string path) : bus_(bus), path_(std::move(path)) {}
  [[nodiscard]] Result<std::string> ask(const char* method);
  [[nodiscard]] Status command(const char* method);
  [[nodiscard]] Status command(const char* method, pid_t pid);
  [[nodiscard]] Status order_record(bool on);
  [[nodiscard]] Result<Message> new_call(const char* method);
  [[nodiscard]] Result<Message> call(Message message, std::uint64_t within_us = 0);  // 0: as for every call
  [[nodiscard]] Result<std::string> text_of(Result<Message> answer);
  [[nodiscard]] Error broken(int r) const;

  std::unique_ptr<sd_bus, Closer> bus_;
  std::string path_;
};

}  // namespace swapd::cli
