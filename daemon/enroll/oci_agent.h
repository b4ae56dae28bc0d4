// The seccomp agent of container runtimes: a container whose profile names this socket (`listenerPath`, OCI runtime
// specification) is managed and limited from its first instruction, without ptrace. Its runtime hands its listener
// over, and from then on it is received as any other (Launches::receive): the guard has a duplicate, and the next swapd
// takes it over.
//
// A runtime starts no container while nothing listens here. If a container cannot be managed (its class is not there,
// say), the log says why, and its calls are let through: a listener that is closed would have them fail. Control
// thread.
#pragma once

#include <sys/socket.h>
#include <systemd/sd-event.h>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "bus/socket.h"
#include "control_loop.h"
#include "engine/engine.h"
#include "enroll/launches.h"
#include "enroll/oci_state.h"
#include "kernel.h"

namespace swapd::daemon {

class OciAgent {
 public:
  struct Parts {
    Engine& engine;
    Launches& launches;
    Kernel kernel;
    // The class that the process comes into; an error: it is not managed, and why.
    std::function<Result<std::string>(const OciContainer& container)> admit;
  };
  explicit OciAgent(Parts parts) : parts_(std::move(parts)) {}
  ~OciAgent() = default;
  OciAgent(const OciAgent&) = delete;
  OciAgent& operator=(const OciAgent&) = delete;

  [[nodiscard]] Status listen(ControlLoop& loop, const std::string& path);

 private:
  // A runtime that is about to hand over a container.
  struct Runtime {
    OciAgent* agent = nullptr;
    Fd connection;
    pid_t pid = 0;
    std::string said;
    std::vector<Fd> fds;  // that came with it
    sd_event_source* readable = nullptr;
    sd_event_source* late = nullptr;
    ~Runtime();
  };
  void take_runtimes();
  [[nodiscard]] Status follow(Runtime& runtime);
  void read(Runtime& runtime);
  void finish(Runtime& runtime, const Status& end);
  [[nodiscard]] Status take(const OciContainer& container, Runtime& runtime);
  void let_through(Fd listener, pid_t pid);
  [[nodiscard]] bool may_hand_over(const ucred& peer) const;

  Parts parts_;
  sd_event* loop_ = nullptr;
  std::optional<bus::ListeningSocket> socket_;
  std::list<std::unique_ptr<Runtime>> runtimes_;
};

}  // namespace swapd::daemon
