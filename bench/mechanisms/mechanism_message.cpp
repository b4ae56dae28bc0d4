// Messages: System V and POSIX queues (the server computes and sends), and UDP, where an unconnected client asks first
// so that the server learns its address.
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "mechanisms/mechanism.h"

namespace swapd::bench {

namespace {

class SysvQueue final : public Mechanism {
 public:
  ~SysvQueue() override {
    if (owned_ >= 0) ::msgctl(owned_, IPC_RMID, nullptr);
  }
  Status create(Place& place) override {
    owned_ = ::msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    if (owned_ < 0) return errno_error("msgget");
    place.client.word = place.server.word = std::to_string(owned_);
    return Done{};
  }
  // The two greet each other before they start. A queue has no holders that anybody could look up, so before the
  // server's first call on it nothing in the system tells who will ever send; with a greeting, as protocols have it,
  // the first iteration is like the others.
  Status attach_client(const Peer& peer) override {
    id_ = std::stoi(peer.word);
    if (::msgrcv(id_, &message_, 0, greeting, 0) < 0) return errno_error("msgrcv");
    return Done{};
  }
  Status attach_server(const Peer& peer) override {
    id_ = std::stoi(peer.word);
    message_.type = greeting;
    if (::msgsnd(id_, &message_, 0, 0) != 0) return errno_error("msgsnd");
    return Done{};
  }
  Status serve(const Computation& compute) override {
    compute();
    stamp(message_.text.data());
    message_.type = 1;
    if (::msgsnd(id_, &message_, answer_size, 0) != 0) return errno_error("msgsnd");
    return Done{};
  }
  Status await() override {
    if (::msgrcv(id_, &message_, answer_size, 1, 0) < 0) return errno_error("msgrcv");
    return check(message_.text.data());
  }

 private:
  struct Message {
    long type = 1;
    std::array<char, answer_size> text{};
  };
  static constexpr long greeting = 2;
  int owned_ = -1;
  int id_ = -1;
  Message message_;
};

class PosixQueue final : public Mechanism {
 public:
  ~PosixQueue() override {
    if (!owned_.empty()) ::mq_unlink(owned_.c_str());
  }
  Status create(Place& place) override {
    const std::string name = "/swapbench-" + std::to_string(::getpid());
    mq_attr attr{};
    attr.mq_maxmsg = 4;
    attr.mq_msgsize = answer_size;
    const Fd queue(::mq_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr));
    if (!queue) return errno_error("mq_open");
    owned_ = name;
    place.client.word = place.server.word = name;
    return Done{};
  }
  Status attach_client(const Peer& peer) override { return open_queue(peer, O_RDONLY); }
  Status attach_server(const Peer& peer) override { return open_queue(peer, O_WRONLY); }
  Status serve(const Computation& compute) override {
    compute();
    stamp(answer_.data());
    if (::mq_send(queue_.get(), answer_.data(), answer_size, 0) != 0) return errno_error("mq_send");
    return Done{};
  }
  Status await() override {
    if (::mq_receive(queue_.get(), answer_.data(), answer_size, nullptr) < 0) return errno_error("mq_receive");
    return check(answer_.data());
  }

 private:
  Status open_queue(const Peer& peer, int flags) {
    queue_ = Fd(::mq_open(peer.word.c_str(), flags | O_CLOEXEC));
    if (!queue_) return errno_error("mq_open");
    return Done{};
  }
  std::string owned_;
  Fd queue_;  // a message queue descriptor is a file descriptor on Linux, mq_overview(7)
  std::array<char, answer_size> answer_{};
};

class Udp final : public Mechanism {
 public:
  Status create(Place& place) override {
    Fd server(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    Fd client(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (!server || !client || ::bind(server.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      return errno_error("udp socket");
    }
    place.client.word = std::to_string(ntohs(address.sin_port));
    place.client.fds.push_back(std::move(client));
    place.server.fds.push_back(std::move(server));
    return Done{};
  }
  Status attach_client(const Peer& peer) override {
    fd_ = peer.fds.at(0);
    other_ = loopback(std::stoi(peer.word));
    return Done{};
  }
  Status attach_server(const Peer& peer) override {
    fd_ = peer.fds.at(0);
    return Done{};
  }
  Status request(const Computation&) override {
    const char ask = '?';
    if (::sendto(fd_, &ask, 1, 0, reinterpret_cast<sockaddr*>(&other_), sizeof other_) != 1)
      return errno_error("sendto");
    return Done{};
  }
  Status serve(const Computation& compute) override {
    char ask = 0;
    socklen_t size = sizeof other_;
    if (::recvfrom(fd_, &ask, 1, 0, reinterpret_cast<sockaddr*>(&other_), &size) < 0) return errno_error("recvfrom");
    compute();
    stamp(answer_.data());
    if (::sendto(fd_, answer_.data(), answer_size, 0, reinterpret_cast<sockaddr*>(&other_), size) < 0) {
      return errno_error("sendto");
    }
    return Done{};
  }
  Status await() override {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    if (::recvfrom(fd_, answer_.data(), answer_size, 0, reinterpret_cast<sockaddr*>(&from), &size) < 0) {
      return errno_error("recvfrom");
    }
    return check(answer_.data());
  }

 private:
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  int fd_ = -1;
  sockaddr_in other_{};
  std::array<char, answer_size> answer_{};
};

}  // namespace

std::unique_ptr<Mechanism> make_message_mechanism(std::string_view name) {
  if (name == "msg") return std::make_unique<SysvQueue>();
  if (name == "mq") return std::make_unique<PosixQueue>();
  if (name == "udp") return std::make_unique<Udp>();
  return nullptr;
}

}  // namespace swapd::bench
