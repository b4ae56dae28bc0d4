// The decision loop's view of the worker: an interface, so that it can be run without one.
#pragma once

#include <vector>

#include "base/event.h"
#include "observe/resolve/resolver.h"

namespace swapd::daemon {

// Asks for the threads that could provide these resources.
struct ScanQuestion {
  ThreadId waiter;
  std::vector<Resource> resources;
  std::vector<pid_t> members;
  Time asked;
  bool again = false;  // of a wait that has been asked about before
};
struct ScanAnswer {
  ScanQuestion question;
  std::vector<observe::Found> found;
};

class Questions {
 public:
  Questions() = default;
  Questions(const Questions&) = delete;
  Questions& operator=(const Questions&) = delete;
  virtual ~Questions() = default;
  virtual void ask(ScanQuestion question) = 0;
  // Nothing is open, and it has rested from what it did last: time for a question that can wait.
  [[nodiscard]] virtual bool rested(Time now) const = 0;
  // It has rested from what it was asked again, whatever else there is to do.
  [[nodiscard]] virtual bool rested_from_scans(Time now) const = 0;
};

}  // namespace swapd::daemon
