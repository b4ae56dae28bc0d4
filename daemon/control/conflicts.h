// Programs and settings that also change priorities, or that change what a priority means: shown by `status`, and
// logged where they change.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "event/sources.h"
#include "policy/policy.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

struct SchedulingConflicts {
  std::vector<std::string> rivals;    // others that set priorities, or decide what they mean
  std::vector<std::string> settings;  // of the kernel, with what they mean for donations under this policy
  bool operator==(const SchedulingConflicts&) const = default;
};
// sys: where sysfs is.
[[nodiscard]] SchedulingConflicts find_conflicts(const sys::Procfs& procfs, const policy::DonationPolicy& policy,
                                                 const std::string& sys = "/sys");

// Looks anew each minute, and when it is asked. Control thread.
class ConflictMonitor {
 public:
  // also: what else is looked at then.
  ConflictMonitor(sd_event* loop, const sys::Procfs& procfs, const policy::DonationPolicy& policy,
                  std::function<void()> also = {});
  ConflictMonitor(const ConflictMonitor&) = delete;
  ConflictMonitor& operator=(const ConflictMonitor&) = delete;

  // A second old at most.
  [[nodiscard]] const SchedulingConflicts& now();

 private:
  void look();

  const sys::Procfs& procfs_;
  const policy::DonationPolicy& policy_;
  std::function<void()> also_;
  SchedulingConflicts seen_;
  Time looked_{};
  Timer timer_;
};

}  // namespace swapd::daemon
