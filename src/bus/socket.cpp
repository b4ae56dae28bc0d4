#include "bus/socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "base/file_lock.h"
#include "base/unix_address.h"

namespace swapd::bus {
namespace {

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status create_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0755) < 0 && errno != EEXIST && errno != EROFS)
      return errno_error("cannot create the directory " + part);
    if (end == std::string::npos) return Done{};
  }
}

// Nothing there: Done. A socket without a listener: removed, Done.
Status make_room(const std::string& path, const std::string& option, const UnixAddress& address) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) < 0) {
    if (errno == ENOENT) return Done{};
    return errno_error("cannot look at " + path);
  }
  if (!S_ISSOCK(there.st_mode))
    return Error(EEXIST, path + " exists and is not a socket: remove it, or give another " + option);
  // SOCK_NONBLOCK: a full backlog is a living daemon too, and answers EAGAIN.
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return errno_error("cannot open a socket");
  const bool refused = ::connect(probe.get(), address.get(), address.size) < 0 && errno == ECONNREFUSED;
  if (!refused) return Error(EADDRINUSE, "swapd is already running at " + path);
  if (::unlink(path.c_str()) < 0 && errno != ENOENT) return errno_error("cannot remove the stale socket " + path);
  return Done{};
}

}  // namespace

Result<ListeningSocket> ListeningSocket::open(const std::string& path, const std::string& option) {
  if (path.empty()) return Error(EINVAL, "the socket path is empty");
  const auto address = unix_address(path);
  if (!address) return Error(ENAMETOOLONG, "the socket path " + path + " is longer than 107 bytes");

  const std::string directory = directory_of(path);
  if (Status made = create_directories(directory); !made) return std::move(made).error();
  const Fd lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) return errno_error("cannot open the directory " + directory);
  // Another swapd that begins holds it for a moment.
  if (Status locked = lock_file(lock.get(), std::chrono::seconds(2)); !locked)
    return std::move(locked).error().in("cannot lock the directory " + directory);
  if (Status room = make_room(path, option, *address); !room) return std::move(room).error();

  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_error("cannot open a socket");
  // bind(2) makes the file with the mode of the socket's own inode, less the umask: no moment at which others may
  // connect.
  if (::fchmod(fd.get(), 0600) < 0) return errno_error("cannot set the mode of the socket");
  if (::bind(fd.get(), address->get(), address->size) < 0) return errno_error("cannot bind " + path);
  ListeningSocket socket(std::move(fd), path);
  struct stat made {};
  if (::lstat(path.c_str(), &made) < 0) return errno_error("cannot look at " + path);
  socket.dev_ = made.st_dev;
  socket.ino_ = made.st_ino;
  if (::listen(socket.fd(), SOMAXCONN) < 0) return errno_error("cannot listen on " + path);
  return socket;
}

ListeningSocket::~ListeningSocket() {
  struct stat now {};
  if (fd_ && ::lstat(path_.c_str(), &now) == 0 && is_ours(now)) ::unlink(path_.c_str());
}

bool ListeningSocket::is_ours(const struct stat& now) const { return now.st_dev == dev_ && now.st_ino == ino_; }

uid_t ListeningSocket::owner() const {
  struct stat now {};
  if (::lstat(path_.c_str(), &now) == 0 && is_ours(now)) return now.st_uid;
  return ::geteuid();
}

}  // namespace swapd::bus
