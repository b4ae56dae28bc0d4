#include "sys/privilege.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace swapd::sys {

bool has_capability(unsigned number, pid_t tid) {
  if (number > CAP_LAST_CAP) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, tid};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) < 0) return false;
  return (data[number / 32].effective & (1U << (number % 32))) != 0;
}

bool has_cap_sys_admin() { return has_capability(CAP_SYS_ADMIN); }

bool has_no_new_privs() { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1; }

}  // namespace swapd::sys
