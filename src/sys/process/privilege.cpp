#include "sys/process/privilege.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

namespace swapd::sys {

bool has_capability(unsigned number, pid_t tid) {
  if (number > CAP_LAST_CAP) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, tid};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) < 0) return false;
  return (data[number / 32].effective & (1U << (number % 32))) != 0;
}

bool has_cap_sys_admin() { return has_capability(CAP_SYS_ADMIN); }

std::uint64_t needed_capabilities() {
  // SYS_ADMIN: filters and their listeners, network namespaces, autogroups more often than ten times a second.
  // DAC: /proc and cgroups of others. SYS_RESOURCE: descriptors, the OOM killer. SYSLOG: addresses in kallsyms.
  // IPC_OWNER: who uses a System V queue or semaphore.
  std::uint64_t bits = 0;
  for (const unsigned one :
       {CAP_SYS_NICE, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN, CAP_DAC_OVERRIDE,
        CAP_DAC_READ_SEARCH, CAP_IPC_LOCK, CAP_SYS_RESOURCE, CAP_SYSLOG, CAP_KILL, CAP_IPC_OWNER})
    bits |= std::uint64_t{1} << one;
  return bits;
}

void keep_needed_capabilities() {
  const std::uint64_t needed = needed_capabilities();
  for (unsigned one = 0; ::prctl(PR_CAPBSET_READ, one, 0, 0, 0) >= 0; ++one) {
    if ((needed >> one & 1) != 0) continue;
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, one, 0, 0);
    ::prctl(PR_CAPBSET_DROP, one, 0, 0, 0);
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) < 0) return;
  for (int half = 0; half < 2; ++half) {
    const auto mask = static_cast<std::uint32_t>(needed >> (32 * half));
    data[half].effective &= mask;
    data[half].permitted &= mask;
    data[half].inheritable &= mask;
  }
  ::syscall(SYS_capset, &header, data);
}

bool has_no_new_privs() { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1; }

}  // namespace swapd::sys
