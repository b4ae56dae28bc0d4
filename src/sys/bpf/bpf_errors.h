// The reason why loading kernel programs failed, in one line.
#pragma once

#include <bpf/libbpf.h>

#include <string>

#include "base/result.h"

namespace swapd::sys {

// Captures libbpf's first warning on this thread while one of these lives, without the prefix and the line's end, and
// in brackets the verifier's objection. Later warnings only say that therefore something else failed too.
class FirstWarning {
 public:
  FirstWarning();
  FirstWarning(const FirstWarning&) = delete;
  FirstWarning& operator=(const FirstWarning&) = delete;
  ~FirstWarning();

  [[nodiscard]] static Error error(int code, const std::string& doing);
};

// EPERM, with the missing capability. CAP_SYS_ADMIN would do for the kernel; who has taken these away from root meant
// it.
[[nodiscard]] Status check_bpf_privilege();

}  // namespace swapd::sys
