// A seccomp profile for container engines (`podman run --security-opt seccomp=FILE`; the format of Docker's profiles),
// with which a container is managed by swapd from its first instruction (enroll/oci_agent.h). Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {

struct OciProfileOptions {
  std::string socket;      // of swapd's agent
  std::string class_name;  // empty: "default", unless the container's annotation says another
  bool limits = false;     // the rules have calls that move bytes
  bool observe = false;    // … and those by which the seccomp observer sees
  bool write_call = true;  // write(2) may be: runc refuses a profile that does (it needs the call itself)
};

// rules: the calls that are to be trapped. base: a profile to begin with; none: all calls are allowed. Only calls that
// `base` allows whatever their arguments and the container's capabilities are trapped: a call that is let through by an
// agent is not looked at by the profile any more. An error: the base is no profile.
[[nodiscard]] Result<nlohmann::ordered_json> oci_profile(std::span<const sys::TrapRule> rules,
                                                         const OciProfileOptions& options,
                                                         const std::optional<nlohmann::ordered_json>& base);

}  // namespace swapd::daemon
