// The log's entries with fields: who was lent what, and who was refused what (systemd/swapd.catalog).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "snapshot.h"
#include "sparing.h"
#include "sys/procfs.h"

namespace swapd::daemon {

// A begun or an ineffective donation that is to be told (Note::journalled).
void log_donation(const Note& note, const sys::Procfs& procfs);

// What somebody was not allowed. Control thread.
class Refusals {
 public:
  explicit Refusals(const Clock& clock) : clock_(clock) {}
  // action: "enroll" … The same for the same user and process is told now and then. Gives `outcome` back.
  Status heard(std::string_view action, pid_t pid, std::uint32_t uid, Status outcome);

 private:
  const Clock& clock_;
  Sparing told_;
};

}  // namespace swapd::daemon
