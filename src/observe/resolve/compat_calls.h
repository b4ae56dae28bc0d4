// System calls of the 32-bit table (arch/x86/entry/syscalls/syscall_32.tbl) whose arguments mean what those of a native
// call mean.
#pragma once

#include <cstdint>

namespace swapd::observe {

// The native number; 1000000 and the given one, which no table has, for a call that is not known: a wait in it is
// reported as unknown.
[[nodiscard]] std::int32_t native_call(std::int32_t compat);

}  // namespace swapd::observe
