// Calls that wait for descriptors.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "busy.h"

namespace busy {
namespace {

constexpr std::uint64_t number_of(unsigned round) { return std::uint64_t{round} * 2654435761U + 1U; }

// The reader of a pipe or of a socket waits for a number.
template <typename Wait, bool socket = false>
class Reader final : public Case {
 public:
  Reader() {
    if ((socket ? ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) : ::pipe(ends_)) != 0) std::abort();
  }
  bool wait(unsigned round) override {
    std::uint64_t number = 0;
    return Wait()(ends_[0], number) && number == number_of(round);
  }
  void end(int, unsigned round) override {
    const std::uint64_t number = number_of(round);
    if (::write(ends_[1], &number, sizeof number) != sizeof number) std::abort();
  }

 private:
  int ends_[2] = {-1, -1};
};

// The writer to a full pipe or socket waits for room. (Of a socket most must have been read before it is woken.)
template <typename Wait, bool socket = false>
class Writer final : public Case {
 public:
  Writer() {
    if ((socket ? ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) : ::pipe(ends_)) != 0) std::abort();
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  void prepare() override {
    ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    while (::write(ends_[1], block_.data(), block_.size()) > 0) {
    }
    ::fcntl(ends_[1], F_SETFL, 0);
  }
  bool wait(unsigned) override { return Wait()(ends_[1], block_.data(), block_.size()); }
  void end(int, unsigned) override {
    std::vector<char> got(65536);
    while (::read(ends_[0], got.data(), got.size()) > 0) {
    }
  }

 private:
  int ends_[2] = {-1, -1};
  std::vector<char> block_ = std::vector<char>(4096);
};

constexpr ssize_t eight = sizeof(std::uint64_t);
bool then_read(int fd, std::uint64_t& n) { return ::read(fd, &n, sizeof n) == eight; }
timespec soon() { return {.tv_sec = 20, .tv_nsec = 0}; }

// NOLINTBEGIN(cppcoreguidelines-pro-type-vararg)
struct Read {
  bool operator()(int fd, std::uint64_t& n) const { return then_read(fd, n); }
};
struct Readv {
  bool operator()(int fd, std::uint64_t& n) const {
    const iovec part{&n, sizeof n};
    return ::readv(fd, &part, 1) == eight;
  }
};
struct Recvfrom {
  bool operator()(int fd, std::uint64_t& n) const {
    return ::recvfrom(fd, &n, sizeof n, MSG_WAITALL, nullptr, nullptr) == eight;
  }
};
// With a time limit it gives EINTR where it is interrupted, handler or not.
struct RecvTimed {
  bool operator()(int fd, std::uint64_t& n) const {
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return ::recv(fd, &n, sizeof n, 0) == eight;
  }
};
struct Recvmsg {
  bool operator()(int fd, std::uint64_t& n) const {
    iovec part{&n, sizeof n};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    return ::recvmsg(fd, &header, 0) == eight;
  }
};
struct Recvmmsg {
  bool operator()(int fd, std::uint64_t& n) const {
    iovec part{&n, sizeof n};
    mmsghdr header{};
    header.msg_hdr.msg_iov = &part;
    header.msg_hdr.msg_iovlen = 1;
    return ::recvmmsg(fd, &header, 1, 0, nullptr) == 1 && header.msg_len == eight;
  }
};
struct Select {
  bool operator()(int fd, std::uint64_t& n) const {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    timeval limit{.tv_sec = 20, .tv_usec = 0};
    return ::select(fd + 1, &set, nullptr, nullptr, &limit) == 1 && then_read(fd, n);
  }
};
struct Pselect {
  bool operator()(int fd, std::uint64_t& n) const {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    sigset_t mask;
    ::sigemptyset(&mask);
    const timespec limit = soon();
    return ::pselect(fd + 1, &set, nullptr, nullptr, &limit, &mask) == 1 && then_read(fd, n);
  }
};
struct Poll {
  bool operator()(int fd, std::uint64_t& n) const {
    pollfd entry{fd, POLLIN, 0};
    return ::poll(&entry, 1, 20000) == 1 && then_read(fd, n);
  }
};
struct Ppoll {
  bool operator()(int fd, std::uint64_t& n) const {
    pollfd entry{fd, POLLIN, 0};
    sigset_t mask;
    ::sigemptyset(&mask);
    const timespec limit = soon();
    return ::ppoll(&entry, 1, &limit, &mask) == 1 && then_read(fd, n);
  }
};
enum class EpollCall { wait, pwait, pwait2 };
template <EpollCall call>
struct Epoll {
  bool operator()(int fd, std::uint64_t& n) const {
    static const int set = [&] {
      const int made = ::epoll_create1(0);
      epoll_event event{.events = EPOLLIN, .data = {}};
      ::epoll_ctl(made, EPOLL_CTL_ADD, fd, &event);
      return made;
    }();
    epoll_event event{};
    sigset_t mask;
    ::sigemptyset(&mask);
    const timespec limit = soon();
    long found = 0;
    switch (call) {
      case EpollCall::wait:
        found = ::epoll_wait(set, &event, 1, -1);
        break;
      case EpollCall::pwait:
        found = ::epoll_pwait(set, &event, 1, 20000, &mask);
        break;
      case EpollCall::pwait2:
        found = ::syscall(441, set, &event, 1, &limit, &mask, 8);
        break;
    }
    return found == 1 && then_read(fd, n);
  }
};
struct SpliceIn {
  bool operator()(int fd, std::uint64_t& n) const {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    const bool good = ::splice(fd, nullptr, ends[1], nullptr, sizeof n, 0) == eight && then_read(ends[0], n);
    ::close(ends[0]);
    ::close(ends[1]);
    return good;
  }
};

struct Write {
  bool operator()(int fd, const void* data, std::size_t size) const {
    return ::write(fd, data, size) == static_cast<ssize_t>(size);
  }
};
struct Writev {
  bool operator()(int fd, void* data, std::size_t size) const {
    const iovec part{data, size};
    return ::writev(fd, &part, 1) == static_cast<ssize_t>(size);
  }
};
struct Sendto {
  bool operator()(int fd, const void* data, std::size_t size) const {
    return ::sendto(fd, data, size, 0, nullptr, 0) == static_cast<ssize_t>(size);
  }
};
struct Sendmsg {
  bool operator()(int fd, void* data, std::size_t size) const {
    iovec part{data, size};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    return ::sendmsg(fd, &header, 0) == static_cast<ssize_t>(size);
  }
};
struct Sendfile {
  bool operator()(int fd, const void*, std::size_t size) const {
    static const int file = [&] {
      const int made = static_cast<int>(::syscall(SYS_memfd_create, "busy", 0));
      if (::ftruncate(made, 1 << 20) != 0) std::abort();
      return made;
    }();
    off_t from = 0;
    std::size_t sent = 0;
    while (sent < size) {
      const ssize_t n = ::sendfile(fd, file, &from, size - sent);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }
};
// NOLINTEND(cppcoreguidelines-pro-type-vararg)

// connect(2) waits where the queue is full, accept(2) where it is empty.
class Listening : public Case {
 public:
  Listening() : listener_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    address_.sun_family = AF_UNIX;
    sa_family_t family = AF_UNIX;  // autobind
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&family), sizeof family) != 0 || ::listen(listener_, 0) != 0)
      std::abort();
    size_ = sizeof address_;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &size_);
  }

 protected:
  [[nodiscard]] int connected() const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address_), size_) != 0) {
      const int error = errno;
      ::close(fd);
      errno = error;
      return -1;
    }
    return fd;
  }
  int listener_;
  sockaddr_un address_{};
  socklen_t size_ = 0;
};

class Accept final : public Listening {
 public:
  bool wait(unsigned round) override {
    const int fd = round % 2 == 0 ? ::accept(listener_, nullptr, nullptr) : ::accept4(listener_, nullptr, nullptr, 0);
    if (fd < 0) return false;
    ::close(fd);
    return true;
  }
  void end(int, unsigned) override { ::close(connected()); }
};

class Connect final : public Listening {
 public:
  Connect() : first_(connected()) {}
  bool wait(unsigned) override {
    const int fd = connected();
    if (fd < 0) return false;
    ::close(fd);
    return true;
  }
  void end(int, unsigned) override { ::close(::accept(listener_, nullptr, nullptr)); }

 private:
  int first_;  // fills the queue
};

}  // namespace

const std::vector<Named>& descriptor_cases() {
  static const std::vector<Named> cases{{"read", make<Reader<Read>>},
                                        {"readv", make<Reader<Readv>>},
                                        {"recvfrom", make<Reader<Recvfrom, true>>},
                                        {"recv with a timeout", make<Reader<RecvTimed, true>>},
                                        {"recvmsg", make<Reader<Recvmsg, true>>},
                                        {"recvmmsg", make<Reader<Recvmmsg, true>>},
                                        {"select", make<Reader<Select>>},
                                        {"pselect6", make<Reader<Pselect>>},
                                        {"poll", make<Reader<Poll>>},
                                        {"ppoll", make<Reader<Ppoll>>},
                                        {"epoll_wait", make<Reader<Epoll<EpollCall::wait>>>},
                                        {"epoll_pwait", make<Reader<Epoll<EpollCall::pwait>>>},
                                        {"epoll_pwait2", make<Reader<Epoll<EpollCall::pwait2>>>},
                                        {"splice", make<Reader<SpliceIn>>},
                                        {"write", make<Writer<Write>>},
                                        {"writev", make<Writer<Writev>>},
                                        {"sendto", make<Writer<Sendto, true>>},
                                        {"sendmsg", make<Writer<Sendmsg, true>>},
                                        {"sendfile", make<Writer<Sendfile>>},
                                        {"accept", make<Accept>},
                                        {"connect", make<Connect>}};
  return cases;
}

}  // namespace busy
