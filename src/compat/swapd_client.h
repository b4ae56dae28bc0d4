// swapd, asked over a message bus (org.swapd1(5)). It is never started for that: a program that is not managed runs as
// it would without swapd.
#pragma once

#include <sys/types.h>

#include <list>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "compat/bus.h"

namespace swapd::compat {

class SwapdClient {
 public:
  // bus: outlives it.
  explicit SwapdClient(sd_bus* bus) : bus_(bus) {}

  [[nodiscard]] bool is_managed(pid_t pid);
  // The process and its descendants, in a class (empty: default). The error is swapd's line.
  [[nodiscard]] Status manage_tree(const Fd& pidfd, const std::string& class_name);
  [[nodiscard]] Status set_nice(pid_t pid, int nice);
  [[nodiscard]] Status release(pid_t pid);

  // The process alone, at some time from the event loop on, where nothing is changed in it by that (the bpf observer).
  // A failure is logged.
  void manage_later(Fd pidfd, const std::string& class_name);

 private:
  // One process that is to be managed.
  struct Request {
    SwapdClient* self = nullptr;
    Fd pidfd;
    std::string class_name;
    Slot call;
  };
  static int on_observer(sd_bus_message* answer, void* data, sd_bus_error* error);
  static int on_managed(sd_bus_message* answer, void* data, sd_bus_error* error);
  void end(const Request& request);
  [[nodiscard]] Result<Message> enrollment(const Fd& pidfd, bool tree, const std::string& class_name);
  [[nodiscard]] Status call(const Message& message);

  sd_bus* bus_;
  std::list<Request> requests_;
};

}  // namespace swapd::compat
