#include "sys/process/pidfd.h"

#include <linux/kcmp.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace swapd::sys {

// By number: glibc has wrappers for these only since 2.36.
Result<Fd> open_pidfd(pid_t pid) {
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);  // close-on-exec by itself
  if (fd < 0) return errno_error("opening a pidfd");
  return Fd(static_cast<int>(fd));
}

Result<Fd> take_fd(int pidfd, int number) {
  const long fd = ::syscall(SYS_pidfd_getfd, pidfd, number, 0);  // close-on-exec by itself
  if (fd < 0) return errno_error("taking a descriptor of another process");
  return Fd(static_cast<int>(fd));
}

bool has_exited(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

bool same_file(int a, int b) { return ::syscall(SYS_kcmp, ::getpid(), ::getpid(), KCMP_FILE, a, b) == 0; }

}  // namespace swapd::sys
