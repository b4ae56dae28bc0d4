#include "sys/procfs/procfs_read.h"

#include <fcntl.h>
#include <unistd.h>

namespace swapd::sys {

namespace {

constexpr std::size_t largest_file = 4U << 20;  // a target can make its fdinfo long; nothing honest comes near this

}  // namespace

Result<std::string_view> read_start(int fd, std::span<char> buffer) {
  for (;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), 0);
    if (got >= 0) return std::string_view(buffer.data(), static_cast<std::size_t>(got));
    if (errno != EINTR) return failed("read");
  }
}

Result<Fd> open_file(const char* path) {
  Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return failed("open");
  return fd;
}

Result<std::string_view> read_start(const char* path, std::span<char> buffer) {
  const auto fd = open_file(path);
  if (!fd) return fd.error();
  return read_start(fd->get(), buffer);
}

Result<std::string> read_all(const char* path) {
  const auto fd = open_file(path);
  if (!fd) return fd.error();
  std::string out;
  std::size_t used = 0;
  while (used < largest_file) {
    out.resize(used + 16384);
    const ssize_t got = ::read(fd->get(), out.data() + used, out.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read");
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  out.resize(used);
  return out;
}

}  // namespace swapd::sys
