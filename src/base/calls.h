// System calls by what a thread may await in them. Numbers are those of this machine.
#pragma once

#include <cstdint>

namespace swapd {

[[nodiscard]] bool writes(std::int32_t call);
// Reads or writes a file, opens one, or has it written back.
[[nodiscard]] bool uses_file(std::int32_t call);

}  // namespace swapd
