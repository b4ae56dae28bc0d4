// What a process may do: ours, as far as a seccomp filter or BPF needs it, or another (capabilities(7), prctl(2)).
#pragma once

#include <sys/types.h>

namespace swapd::sys {

// In the effective set of a thread (0: the calling one); a number of linux/capability.h. It may hold in another user
// namespace than ours only.
[[nodiscard]] bool has_capability(unsigned number, pid_t tid = 0);
// CAP_SYS_ADMIN in the effective set: with it a filter may be installed without no_new_privs.
[[nodiscard]] bool has_cap_sys_admin();
[[nodiscard]] bool has_no_new_privs();

}  // namespace swapd::sys
