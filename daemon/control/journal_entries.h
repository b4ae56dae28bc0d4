// The log's entries with fields: donations, and requests that swapd has refused (systemd/swapd.catalog).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/rate_limiter.h"
#include "base/result.h"
#include "bus/caller.h"
#include "engine/snapshot.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

// A begun or an ineffective donation that is to be told (Note::journalled).
void log_donation(const Note& note, const sys::Procfs& procfs);

// Refused requests, for the log. Control thread.
class DenialLog {
 public:
  explicit DenialLog(const Clock& clock) : clock_(clock) {}
  // action: "enroll" … What one user is refused of one sort is told once in ten seconds. Gives `outcome` back; says
  // nothing of what the caller may yet be granted.
  Status heard(std::string_view action, pid_t pid, const bus::Caller& caller, Status outcome);
  void tell(std::string_view action, pid_t pid, const bus::Caller& caller, const Error& why);

 private:
  const Clock& clock_;
  RateLimiter told_;
};

}  // namespace swapd::daemon
