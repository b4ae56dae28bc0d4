// The observer that the engine runs with, bpf or seccomp, and what it has told. Engine thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/event.h"
#include "kernel.h"
#include "observe/observer.h"
#include "observe/seccomp/receiver.h"
#include "observe/seccomp/seccomp_observer.h"
#include "sys/bpf/bpf_tracer.h"

namespace swapd::daemon {

class Observation {
 public:
  // tracer: observe with it; null: with seccomp.
  Observation(const Kernel& kernel, observe::Resolver& resolver, const observe::SeccompObserver::Settings& settings,
              std::unique_ptr<sys::BpfTracer> tracer, observe::Observer::Hooks hooks);

  [[nodiscard]] observe::Observer& observer() { return *observer_; }
  [[nodiscard]] const observe::Observer& observer() const { return *observer_; }
  // Whether processes are observed through a filter, which must be installed in them.
  [[nodiscard]] bool needs_listeners() const { return seccomp_ != nullptr; }
  // Features that the kernel or the privileges do not give, a line each.
  [[nodiscard]] std::vector<std::string> missing() const;
  // A started receiver. With bpf its calls are answered and not looked at.
  void add(const std::shared_ptr<observe::Receiver>& receiver);
  void remove(const observe::Receiver* receiver);
  // All that has happened since the last call, by time. Valid until the next one.
  [[nodiscard]] const std::vector<Event>& drain(Time now);
  // The part (up to 1) of the watched threads that swapd can afford to hear of. They take turns; what the others do is
  // not told, and they count as running. (With bpf a thread costs nothing until it is told of.)
  void hear(double part) {
    if (seccomp_ != nullptr) seccomp_->hear(part);
  }
  // More threads are watched than are heard of whatever the part is.
  [[nodiscard]] bool has_many() const {
    return seccomp_ != nullptr && seccomp_->costs().watched > observe::HearingTurns::always_heard;
  }
  // The process has ended, or called execve(2).
  void forget_image(pid_t tgid) { resolver_.forget(tgid); }
  // A line about something that the observer cannot do at present; empty: nothing.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  observe::Resolver& resolver_;
  std::unique_ptr<observe::Observer> observer_;
  observe::SeccompObserver* seccomp_ = nullptr;  // the same, if it is one
  std::vector<Event> events_;                    // of the last drain(); kept for its memory
  std::string trouble_;
};

}  // namespace swapd::daemon
