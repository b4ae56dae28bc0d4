#include "observe/resolve/lock_calls.h"

#include <cstdio>

namespace swapd::observe {

std::optional<RangeRequest> requested_range(const struct flock& lock, std::uint64_t position, std::uint64_t size) {
  // As fs/locks.c flock64_to_posix_lock() does: start relative to a base, a negative length reaches backwards, and
  // zero means to the end.
  std::uint64_t base = 0;
  if (lock.l_whence == SEEK_CUR) {
    base = position;
  } else if (lock.l_whence == SEEK_END) {
    base = size;
  } else if (lock.l_whence != SEEK_SET) {
    return std::nullopt;
  }
  std::int64_t first = 0;
  std::int64_t last = 0;
  if (base > INT64_MAX || __builtin_add_overflow(static_cast<std::int64_t>(base), lock.l_start, &first) || first < 0)
    return std::nullopt;
  RangeRequest out{.first = static_cast<std::uint64_t>(first), .last = UINT64_MAX, .write = lock.l_type == F_WRLCK};
  if (lock.l_len > 0) {
    if (__builtin_add_overflow(first, lock.l_len - 1, &last)) return std::nullopt;
    out.last = static_cast<std::uint64_t>(last);
  } else if (lock.l_len < 0) {
    if (__builtin_add_overflow(first, lock.l_len, &last) || last < 0 || first == 0) return std::nullopt;
    out.last = out.first - 1;
    out.first = static_cast<std::uint64_t>(last);
  }
  // The kernel keeps "to the end" as the largest offset.
  if (out.last == static_cast<std::uint64_t>(INT64_MAX)) out.last = UINT64_MAX;
  return out;
}

std::optional<RangeRequest> requested_range(const sys::Procfs& procfs, pid_t tid, int fd, std::uint64_t address) {
  struct flock lock {};
  if (!sys::Procfs::read_memory(tid, address, &lock, sizeof lock)) return std::nullopt;
  std::uint64_t position = 0;
  std::uint64_t size = 0;
  if (lock.l_whence == SEEK_CUR) {
    const auto info = procfs.fdinfo(tid, fd);
    if (!info) return std::nullopt;
    position = info->pos;
  } else if (lock.l_whence == SEEK_END) {
    const auto known = procfs.fd_size(tid, fd);
    if (!known) return std::nullopt;
    size = *known;
  }
  return requested_range(lock, position, size);
}

}  // namespace swapd::observe
