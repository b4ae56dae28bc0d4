// Blocks on sockets of every family that swapd resolves.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <string>

#include "programs/block.h"

using block::must;

namespace {

sockaddr_un abstract(const char* tag) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "swapd-test-%s-%d", tag, ::getpid());
  return name;
}

int bound(int type, const sockaddr_un& name) {
  const int fd = must(::socket(AF_UNIX, type, 0), "socket");
  must(::bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name), "bind");
  return fd;
}

// The waiter reads (or writes until it is full) one end, the provider has the other.
void pair_of(int type, bool write) {
  std::array<int, 2> ends{};
  must(::socketpair(AF_UNIX, type, 0, ends.data()), "socketpair");
  const pid_t provider = block::spawn([&] {
    ::close(ends[0]);
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    ::close(ends[1]);
    write ? block::fill(ends[0]) : block::read_byte(ends[0]);
  });
  ::close(ends[0]);
  ::close(ends[1]);
  block::report(waiter, provider);
}

// A client that waits for the answer of a server, which has accepted or not.
void served(int listener, const sockaddr* to, socklen_t size, bool accept) {
  must(::listen(listener, 5), "listen");
  block::Gate accepted;
  const int family = to->sa_family;
  int type = 0;
  socklen_t length = sizeof type;
  ::getsockopt(listener, SOL_SOCKET, SO_TYPE, &type, &length);
  const pid_t provider = block::spawn([&] {
    if (accept) {
      must(::accept(listener, nullptr, nullptr), "accept");
      ::close(listener);
    }
    accepted.open();
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    ::close(listener);
    const int fd = must(::socket(family, type, 0), "socket");
    must(::connect(fd, to, size), "connect");
    must(static_cast<int>(::write(fd, "?", 1)), "write");
    accepted.wait();
    block::read_byte(fd);
  });
  ::close(listener);
  accepted.settle();
  block::report(waiter, provider);
}

void served_unix(int type, bool accept) {
  const sockaddr_un name = abstract("served");
  served(bound(type, name), reinterpret_cast<const sockaddr*>(&name), sizeof name, accept);
}

sockaddr_storage loopback_address(int family) {
  sockaddr_storage storage{};
  if (family == AF_INET6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_addr = in6addr_loopback;
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  return storage;
}

int inet_socket(int family, int type, sockaddr_storage& storage) {
  storage = loopback_address(family);
  const int fd = must(::socket(family, type, 0), "socket");
  socklen_t size = sizeof storage;
  must(::bind(fd, reinterpret_cast<const sockaddr*>(&storage), size), "bind");
  must(::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size), "getsockname");
  return fd;
}

void tcp(int family, bool accept) {
  sockaddr_storage name{};
  const int listener = inet_socket(family, SOCK_STREAM, name);
  served(listener, reinterpret_cast<const sockaddr*>(&name), sizeof name, accept);
}

// Waits in connect(): the queue of the listening socket is full.
void refused_for_now(int listener, const sockaddr* to, socklen_t size) {
  must(::listen(listener, 0), "listen");
  const pid_t provider = block::spawn([] { block::idle(); });
  const pid_t waiter = block::spawn([&] {
    ::close(listener);
    for (int i = 0; i < 64; ++i) must(::connect(::socket(to->sa_family, SOCK_STREAM, 0), to, size), "connect");
  });
  ::close(listener);
  block::report(waiter, provider);
}

void connect_unix() {
  const sockaddr_un name = abstract("connect");
  refused_for_now(bound(SOCK_STREAM, name), reinterpret_cast<const sockaddr*>(&name), sizeof name);
}

void connect_path() {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::array<char, 32> directory{"/tmp/swapd-test-XXXXXX"};
  if (::mkdtemp(directory.data()) == nullptr || ::chdir(directory.data()) != 0) std::exit(1);
  std::strcpy(name.sun_path, "./socket");  // relative: only the caller's working directory tells which
  refused_for_now(bound(SOCK_STREAM, name), reinterpret_cast<const sockaddr*>(&name), sizeof name);
  ::unlink("socket");
  ::rmdir(directory.data());
}

void connect_tcp() {
  sockaddr_storage name{};
  const int listener = inet_socket(AF_INET, SOCK_STREAM, name);
  refused_for_now(listener, reinterpret_cast<const sockaddr*>(&name), sizeof name);
}

void accepting() {
  const sockaddr_un name = abstract("accept");
  const int listener = bound(SOCK_STREAM, name);
  must(::listen(listener, 5), "listen");
  const pid_t provider = block::spawn([&] {
    ::close(listener);
    block::idle();
  });
  const pid_t waiter = block::spawn([&] { ::accept(listener, nullptr, nullptr); });
  ::close(listener);
  block::report(waiter, provider);
}

// A datagram server that knows nobody, and a client that is connected to it.
void dgram_server() {
  const sockaddr_un name = abstract("dgram");
  const int server = bound(SOCK_DGRAM, name);
  block::Gate connected;
  const pid_t provider = block::spawn([&] {
    ::close(server);
    const int fd = must(::socket(AF_UNIX, SOCK_DGRAM, 0), "socket");
    must(::connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name), "connect");
    connected.open();
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    connected.wait();
    block::read_byte(server);
  });
  ::close(server);
  connected.settle();
  block::report(waiter, provider);
}

// connected: the client has called connect(); else both only use addresses.
void udp(int family, bool connected, bool server_waits) {
  sockaddr_storage name{};
  const int server = inet_socket(family, SOCK_DGRAM, name);
  sockaddr_storage own{};
  const int client = inet_socket(family, SOCK_DGRAM, own);
  if (connected) must(::connect(client, reinterpret_cast<const sockaddr*>(&name), sizeof name), "connect");
  const int waits = server_waits ? server : client;
  const int provides = server_waits ? client : server;
  const pid_t provider = block::spawn([&] {
    ::close(waits);
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    ::close(provides);
    std::array<char, 1> byte{};
    ::recvfrom(waits, byte.data(), byte.size(), 0, nullptr, nullptr);
  });
  ::close(server);
  ::close(client);
  block::report(waiter, provider);
}

constexpr block::Scenario scenarios[] = {
    {"pair-stream", [] { pair_of(SOCK_STREAM, false); }},
    {"pair-dgram", [] { pair_of(SOCK_DGRAM, false); }},
    {"pair-seqpacket", [] { pair_of(SOCK_SEQPACKET, false); }},
    {"pair-write", [] { pair_of(SOCK_STREAM, true); }},
    {"unix-stream", [] { served_unix(SOCK_STREAM, true); }},
    {"unix-seqpacket", [] { served_unix(SOCK_SEQPACKET, true); }},
    {"unix-unaccepted", [] { served_unix(SOCK_STREAM, false); }},
    {"unix-dgram", dgram_server},
    {"tcp", [] { tcp(AF_INET, true); }},
    {"tcp6", [] { tcp(AF_INET6, true); }},
    {"tcp-unaccepted", [] { tcp(AF_INET, false); }},
    {"udp-client", [] { udp(AF_INET, true, false); }},
    {"udp-server", [] { udp(AF_INET, true, true); }},
    {"udp6-server", [] { udp(AF_INET6, true, true); }},
    {"udp-unconnected", [] { udp(AF_INET, false, true); }},
    {"accept", accepting},
    {"connect-unix", connect_unix},
    {"connect-path", connect_path},
    {"connect-tcp", connect_tcp},
};

}  // namespace

int main(int argc, char** argv) { return block::main_of(argc, argv, scenarios); }
