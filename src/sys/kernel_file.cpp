#include "sys/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/fd.h"

namespace swapd::sys {

Result<std::string> read_text(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("opening " + path);
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("reading " + path);
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

Status write_text(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return errno_error("opening " + path);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return errno_error("writing " + std::string(text) + " to " + path);
  return Done{};
}

}  // namespace swapd::sys
