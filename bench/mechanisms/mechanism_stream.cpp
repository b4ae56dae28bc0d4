// Byte streams: unix and TCP sockets, pipe, FIFO, and epoll over one socket among idle ones. The server computes and
// writes; the client reads. A client that is scheduled as soon as it is woken empties the stream before the next
// answer.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "mechanisms/mechanism.h"

namespace swapd::bench {

namespace {

class Stream : public Mechanism {
 public:
  Status serve(const Computation& compute) override {
    compute();
    stamp(answer_.data());
    for (std::size_t sent = 0; sent < answer_size;) {
      const ssize_t size = ::write(fd_, answer_.data() + sent, answer_size - sent);
      if (size < 0) return errno_error("write");
      sent += static_cast<std::size_t>(size);
    }
    return Done{};
  }
  Status await() override {
    for (std::size_t got = 0; got < answer_size;) {
      const ssize_t size = ::read(fd_, answer_.data() + got, answer_size - got);
      if (size < 0) return errno_error("read");
      if (size == 0) return Error(EPIPE, "read: the server is gone");
      got += static_cast<std::size_t>(size);
    }
    return check(answer_.data());
  }

 protected:
  int fd_ = -1;
  Fd own_;

 private:
  std::array<char, answer_size> answer_{};
};

class Pipe final : public Stream {
 public:
  Status create(Place& place) override {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe");
    place.client.fds.emplace_back(ends[0]);
    place.server.fds.emplace_back(ends[1]);
    return Done{};
  }
  Status attach_client(const Peer& peer) override { return take(peer); }
  Status attach_server(const Peer& peer) override { return take(peer); }

 private:
  Status take(const Peer& peer) {
    fd_ = peer.fds.at(0);
    return Done{};
  }
};

class Fifo final : public Stream {
 public:
  Status create(Place& place) override {
    place.client.word = place.server.word = place.dir + "/fifo";
    if (::mkfifo(place.client.word.c_str(), 0600) != 0) return errno_error("mkfifo");
    return Done{};
  }
  // Each open waits for the other side's.
  Status attach_client(const Peer& peer) override { return open_fifo(peer, O_RDONLY); }
  Status attach_server(const Peer& peer) override { return open_fifo(peer, O_WRONLY); }

 private:
  Status open_fifo(const Peer& peer, int flags) {
    own_ = Fd(::open(peer.word.c_str(), flags | O_CLOEXEC));
    fd_ = own_.get();
    if (!own_) return errno_error("opening the fifo");
    return Done{};
  }
};

// The harness listens, so that the client can connect before the server has begun to accept.
class Socket : public Stream {
 public:
  Status attach_server(const Peer& peer) override {
    own_ = Fd(::accept4(peer.fds.at(0), nullptr, nullptr, SOCK_CLOEXEC));
    fd_ = own_.get();
    if (!own_) return errno_error("accept");
    return Done{};
  }

 protected:
  template <typename Address>
  Status listen_at(Place& place, const Address& address) {
    Fd fd(::socket(reinterpret_cast<const sockaddr*>(&address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd.get(), 1) != 0) {
      return errno_error("listening");
    }
    place.server.fds.push_back(std::move(fd));
    return Done{};
  }
  template <typename Address>
  Status connect_to(const Address& address) {
    own_ = Fd(::socket(reinterpret_cast<const sockaddr*>(&address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    fd_ = own_.get();
    if (!own_ || ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return errno_error("connect");
    return Done{};
  }
};

class UnixSocket final : public Socket {
 public:
  Status create(Place& place) override {
    place.client.word = place.dir + "/server";
    return listen_at(place, address_of(place.client.word));
  }
  Status attach_client(const Peer& peer) override { return connect_to(address_of(peer.word)); }

 private:
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
};

class TcpSocket final : public Socket {
 public:
  Status create(Place& place) override {
    if (const auto listening = listen_at(place, address_of(0)); !listening) return listening;
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (::getsockname(place.server.fds[0].get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      return errno_error("getsockname");
    }
    place.client.word = std::to_string(ntohs(address.sin_port));
    return Done{};
  }
  Status attach_client(const Peer& peer) override { return connect_to(address_of(std::stoi(peer.word))); }
  Status attach_server(const Peer& peer) override {
    if (const auto accepted = Socket::attach_server(peer); !accepted) return accepted;
    const int on = 1;
    if (::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) return errno_error("TCP_NODELAY");
    return Done{};
  }

 private:
  static sockaddr_in address_of(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
};

// The client waits for all its sockets; only the first has a server, the other ends of the rest stay with the harness.
class Epoll final : public Stream {
 public:
  Status create(Place& place) override {
    for (int i = 0; i < sockets; ++i) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno_error("socketpair");
      place.client.fds.emplace_back(ends[0]);
      (i == 0 ? place.server.fds : place.kept).emplace_back(ends[1]);
    }
    return Done{};
  }
  Status attach_client(const Peer& peer) override {
    own_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!own_) return errno_error("epoll_create1");
    for (const int fd : peer.fds) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.fd = fd;
      if (::epoll_ctl(own_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return errno_error("epoll_ctl");
    }
    return Done{};
  }
  Status attach_server(const Peer& peer) override {
    fd_ = peer.fds.at(0);
    return Done{};
  }
  Status await() override {
    epoll_event event{};
    if (::epoll_wait(own_.get(), &event, 1, -1) != 1) return errno_error("epoll_wait");
    fd_ = event.data.fd;
    return Stream::await();
  }

 private:
  static constexpr int sockets = 4;
};

}  // namespace

std::unique_ptr<Mechanism> make_stream_mechanism(std::string_view name) {
  if (name == "socket") return std::make_unique<UnixSocket>();
  if (name == "pipe") return std::make_unique<Pipe>();
  if (name == "fifo") return std::make_unique<Fifo>();
  if (name == "tcp") return std::make_unique<TcpSocket>();
  if (name == "epoll") return std::make_unique<Epoll>();
  return nullptr;
}

}  // namespace swapd::bench
