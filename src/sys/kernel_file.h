// Files of a few lines, as /proc and the cgroup file systems have them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace swapd::sys {

[[nodiscard]] Result<std::string> read_text(const std::string& path);
// One write(2): the kernel takes each as a whole value.
[[nodiscard]] Status write_text(const std::string& path, std::string_view text);

}  // namespace swapd::sys
