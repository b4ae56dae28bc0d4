// Processes by descriptor: pidfd_open(2), pidfd_getfd(2).
#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::sys {

[[nodiscard]] Result<Fd> open_pidfd(pid_t pid);
// A duplicate (close-on-exec) of descriptor `number` of that process. EBADF: it has no such; EPERM: it may not be
// traced.
[[nodiscard]] Result<Fd> take_fd(int pidfd, int number);
// Are two of our descriptors one open file? kcmp(2); false where the kernel has it not.
[[nodiscard]] bool same_file(int a, int b);
// True once the whole process is dead (a zombie is).
[[nodiscard]] bool has_exited(int pidfd);

}  // namespace swapd::sys
