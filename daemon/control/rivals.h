// Programs and settings that also change priorities, or that change what a priority means: shown by `status`, and
// logged where they change.
#pragma once

#include <systemd/sd-event.h>

#include <functional>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

struct Surroundings {
  std::vector<std::string> rivals;    // others that set priorities, or decide what they mean
  std::vector<std::string> settings;  // of the kernel, with what they mean for loans under this policy
  bool operator==(const Surroundings&) const = default;
};
// sys: where sysfs is.
[[nodiscard]] Surroundings look_around(const sys::Procfs& procfs, const policy::DonationPolicy& policy,
                                       const std::string& sys = "/sys");

// Looks anew each minute, and when it is asked. Control thread.
class Neighbours {
 public:
  // also: what else is looked at then.
  Neighbours(sd_event* loop, const sys::Procfs& procfs, const policy::DonationPolicy& policy,
             std::function<void()> also = {});
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  ~Neighbours();

  // A second old at most.
  [[nodiscard]] const Surroundings& now();

 private:
  void look();
  void look_later();

  sd_event* loop_;
  sd_event_source* timer_ = nullptr;
  const sys::Procfs& procfs_;
  const policy::DonationPolicy& policy_;
  std::function<void()> also_;
  Surroundings seen_;
  Time looked_{};
};

}  // namespace swapd::daemon
