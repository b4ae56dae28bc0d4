// Privileges of a process: ours, as far as a seccomp filter or BPF needs it, or another (capabilities(7), prctl(2)).
// By system calls, without libcap-ng: the guard links this file, and has nothing but libc.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace swapd::sys {

// In the effective set of a thread (0: the calling one); a number of linux/capability.h. It may hold in another user
// namespace than ours only.
[[nodiscard]] bool has_capability(unsigned number, pid_t tid = 0);
// CAP_SYS_ADMIN in the effective set: with it a filter may be installed without no_new_privs.
[[nodiscard]] bool has_cap_sys_admin();
[[nodiscard]] bool has_no_new_privs();

// The capabilities that swapd and its small processes work with, as bits: to see and schedule other users' threads,
// load BPF, read /proc, write cgroups, lock memory.
[[nodiscard]] std::uint64_t needed_capabilities();
// Gives up all others, in every set, for good: programs that the caller starts have no more either. Of the calling
// thread and those it makes from now on. What cannot be given up (CAP_SETPCAP is missing) stays.
void keep_needed_capabilities();

}  // namespace swapd::sys
