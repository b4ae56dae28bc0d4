// A program with a seccomp listener of its own, as container runtimes and sandboxes have. Exit status: 0, it has got
// it; 3, EBUSY; 4, another error. HIDDEN: its code does not show what it asks for.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

int main() {
  sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{1, code};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  long got = -1;
#ifdef HIDDEN
  volatile long number = SYS_seccomp - 1, flag = SECCOMP_FILTER_FLAG_NEW_LISTENER - 1;
  got = ::syscall(number + 1, SECCOMP_SET_MODE_FILTER, flag + 1, &program);
#else
  got = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
#endif
  return got >= 0 ? 0 : errno == EBUSY ? 3 : 4;
}
