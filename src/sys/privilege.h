// What the calling process may do, as far as a seccomp filter or BPF needs it (capabilities(7), prctl(2)).
#pragma once

namespace swapd::sys {

// In the effective set; a number of linux/capability.h.
[[nodiscard]] bool has_capability(unsigned number);
// CAP_SYS_ADMIN in the effective set: with it a filter may be installed without no_new_privs.
[[nodiscard]] bool has_cap_sys_admin();
[[nodiscard]] bool has_no_new_privs();

}  // namespace swapd::sys
