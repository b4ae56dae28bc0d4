#include "base/calls.h"

#include <sys/syscall.h>

namespace swapd {

bool writes(std::int32_t call) { return call == SYS_write || call == SYS_writev; }

bool uses_file(std::int32_t call) {
  switch (call) {
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_openat:
      return true;
    default:
      return false;
  }
}

}  // namespace swapd
