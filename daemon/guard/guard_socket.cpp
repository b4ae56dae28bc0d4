#include "guard/guard_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/unix_address.h"

namespace swapd::daemon {

void GuardDoor::open(std::string path) {
  const auto address = unix_address(path);
  error_ = address ? 0 : ENAMETOOLONG;
  if (!address) return;
  path_ = std::move(path);
  socket_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ::unlink(path_.c_str());
  ::fchmod(socket_.get(), 0600);  // before bind(2), which gives the file the same mode
  if (::bind(socket_.get(), address->get(), address->size) != 0 || ::listen(socket_.get(), 4) != 0) {
    error_ = errno;
    shut();
  }
}

void GuardDoor::shut() {
  if (!socket_) return;
  ::unlink(path_.c_str());
  socket_.reset();
}

Fd GuardDoor::accept() const {
  Fd caller(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  ucred who{};
  socklen_t size = sizeof who;
  const bool ours =
      caller && ::getsockopt(caller.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == ::geteuid();
  return ours ? std::move(caller) : Fd();
}

}  // namespace swapd::daemon
