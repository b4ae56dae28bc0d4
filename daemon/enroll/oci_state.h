// A container, as its runtime describes it when it hands over its seccomp listener: the container process state of the
// OCI runtime specification (config-linux, seccomp). Pure.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace swapd::daemon {

struct OciContainer {
  pid_t pid = 0;                // of its first process, as the runtime sees it
  std::string id;               // the runtime's name for it
  std::string class_name;       // empty: none is named
  bool limits = false;          // its filter traps calls that move bytes
  bool observe = false;         // … and those by which the seccomp observer sees
  std::size_t listener_at = 0;  // of the descriptors that came with it, the one that is the listener
};

// The annotation of the container that names its class. It comes before `class=` in the profile's listenerMetadata.
inline constexpr std::string_view oci_class_annotation = "org.swapd1.class";
// Words of the profile's listenerMetadata, with spaces between: `limits`, `observe`, `class=NAME`.
inline constexpr std::string_view oci_limits_word = "limits", oci_observe_word = "observe", oci_class_word = "class=";

// nullopt: it is no whole JSON object yet. An error: it is one, and what is wrong with it.
[[nodiscard]] Result<std::optional<OciContainer>> read_oci_state(std::string_view text);

}  // namespace swapd::daemon
