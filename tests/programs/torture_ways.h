// The ways in which torture's pairs hand a number to each other: every mechanism that swapd observes.
#pragma once

#include <arpa/inet.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace torture {

inline void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

// One way: a number put in at one side comes out at the other. False: errno says why.
class Way {
 public:
  virtual ~Way() = default;
  [[nodiscard]] virtual bool stays() const { return false; }  // until both ends have ended
  virtual bool put(std::uint64_t number) = 0;
  virtual bool get(std::uint64_t& number) = 0;
};

class Descriptors : public Way {
 public:
  enum class Wait { none, poll, epoll };
  Descriptors(int in, int out, Wait wait = Wait::none) : in_(in), out_(out), wait_(wait) {
    if (wait_ != Wait::epoll) return;
    set_ = ::epoll_create1(0);
    epoll_event event{.events = EPOLLIN, .data = {}};
    must(::epoll_ctl(set_, EPOLL_CTL_ADD, in_, &event) == 0, "epoll_ctl");
  }
  ~Descriptors() override {
    for (const int fd : {in_, out_, set_})
      if (fd >= 0) ::close(fd);
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  bool put(std::uint64_t number) override { return ::write(out_, &number, sizeof number) == sizeof number; }
  bool get(std::uint64_t& number) override {
    pollfd entry{in_, POLLIN, 0};
    epoll_event event{};
    if (wait_ == Wait::poll && ::poll(&entry, 1, -1) != 1) return false;
    if (wait_ == Wait::epoll && ::epoll_wait(set_, &event, 1, -1) != 1) return false;
    return ::read(in_, &number, sizeof number) == sizeof number;
  }

 private:
  int in_, out_, set_ = -1;
  Wait wait_;
};

class SysvQueue : public Way {
 public:
  SysvQueue() : id_(::msgget(IPC_PRIVATE, 0600)), owner_(::getpid()) { must(id_ >= 0, "msgget"); }
  ~SysvQueue() override {
    if (::getpid() == owner_) ::msgctl(id_, IPC_RMID, nullptr);
  }
  [[nodiscard]] bool stays() const override { return true; }
  bool put(std::uint64_t number) override {
    const Message message{1, number};
    return ::msgsnd(id_, &message, sizeof number, 0) == 0;
  }
  bool get(std::uint64_t& number) override {
    Message message{};
    const bool good = ::msgrcv(id_, &message, sizeof number, 0, 0) == sizeof number;
    number = message.number;
    return good;
  }

 private:
  struct Message {
    long type;
    std::uint64_t number;
  };
  int id_;
  pid_t owner_;
};

// The number in memory, its coming told by something that carries none.
class Told : public Way {
 public:
  explicit Told(std::uint64_t* place) : place_(place) {}
  bool put(std::uint64_t number) override {
    *place_ = number;
    return tell();
  }
  bool get(std::uint64_t& number) override {
    if (!hear()) return false;
    number = *place_;
    return true;
  }
  virtual bool tell() = 0;
  virtual bool hear() = 0;

 private:
  std::uint64_t* place_;
};

class Semaphore : public Told {
 public:
  explicit Semaphore(std::uint64_t* place) : Told(place), id_(::semget(IPC_PRIVATE, 1, 0600)), owner_(::getpid()) {
    must(id_ >= 0, "semget");
  }
  ~Semaphore() override {
    if (::getpid() == owner_) ::semctl(id_, 0, IPC_RMID);
  }
  [[nodiscard]] bool stays() const override { return true; }
  bool tell() override { return change(1); }
  bool hear() override { return change(-1); }

 private:
  bool change(short by) const {
    sembuf operation{0, by, 0};
    return ::semop(id_, &operation, 1) == 0;
  }
  int id_;
  pid_t owner_;
};

class Event : public Told {
 public:
  explicit Event(std::uint64_t* place) : Told(place), fd_(::eventfd(0, 0)) { must(fd_ >= 0, "eventfd"); }
  ~Event() override { ::close(fd_); }
  bool tell() override { return ::eventfd_write(fd_, 1) == 0; }
  bool hear() override {
    eventfd_t count = 0;
    return ::eventfd_read(fd_, &count) == 0;
  }

 private:
  int fd_;
};

// In a file, so that each side reads and writes the disk's files.
class File : public Told {
 public:
  explicit File(std::uint64_t* place) : Told(place), fd_(::eventfd(0, 0)) {
    char name[] = "/var/tmp/swapd-torture-XXXXXX";
    file_ = ::mkstemp(name);
    must(file_ >= 0 && fd_ >= 0, "mkstemp");
    ::unlink(name);
  }
  ~File() override {
    ::close(file_);
    ::close(fd_);
  }
  bool put(std::uint64_t number) override {
    return ::pwrite(file_, &number, sizeof number, 0) == sizeof number && Told::put(number);
  }
  bool get(std::uint64_t& number) override {
    std::uint64_t written = 0;
    if (!Told::get(number) || ::pread(file_, &written, sizeof written, 0) != sizeof written) return false;
    if (written != number) number = ~number;
    return true;
  }

 private:
  bool tell() override { return ::eventfd_write(fd_, 1) == 0; }
  bool hear() override {
    eventfd_t count = 0;
    return ::eventfd_read(fd_, &count) == 0;
  }
  int file_ = -1, fd_;
};

class Futex : public Told {
 public:
  Futex(std::uint64_t* place, std::atomic<std::uint32_t>* word) : Told(place), word_(word) {}
  bool tell() override {
    word_->fetch_add(1);
    return ::syscall(SYS_futex, word_, FUTEX_WAKE, 1, nullptr, nullptr, 0) >= 0;
  }
  bool hear() override {
    while (word_->load() == seen_)
      if (::syscall(SYS_futex, word_, FUTEX_WAIT, seen_, nullptr, nullptr, 0) != 0 && errno != EAGAIN) return false;
    ++seen_;
    return true;
  }

 private:
  std::atomic<std::uint32_t>* word_;
  std::uint32_t seen_ = 0;
};

class Mq : public Way {
 public:
  explicit Mq(const std::string& name) {
    mq_attr attr{};
    attr.mq_maxmsg = 4;
    attr.mq_msgsize = sizeof(std::uint64_t);
    fd_ = ::mq_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
    must(fd_ >= 0, "mq_open");
    ::mq_unlink(name.c_str());
  }
  ~Mq() override { ::mq_close(fd_); }
  bool put(std::uint64_t number) override {
    return ::mq_send(fd_, reinterpret_cast<const char*>(&number), sizeof number, 0) == 0;
  }
  bool get(std::uint64_t& number) override {
    return ::mq_receive(fd_, reinterpret_cast<char*>(&number), sizeof number, nullptr) == sizeof number;
  }

 private:
  mqd_t fd_;
};

struct Link {
  std::unique_ptr<Way> there, back;
};

inline constexpr std::array kinds = {"pipe",    "socket", "poll", "epoll", "msg",  "sem",
                                     "eventfd", "futex",  "mq",   "tcp",   "file", "datagram"};

// words: two of shared memory, each pair its own.
inline Link make(std::size_t pair, std::array<std::atomic<std::uint32_t>, 2>& words) {
  using Wait = Descriptors::Wait;
  auto* places =
      static_cast<std::uint64_t*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  must(places != MAP_FAILED, "mmap");
  const auto pipes = [](Wait wait) {
    std::array<int, 2> there{}, back{};
    must(::pipe(there.data()) == 0 && ::pipe(back.data()) == 0, "pipe");
    return Link{std::make_unique<Descriptors>(there[0], there[1], wait),
                std::make_unique<Descriptors>(back[0], back[1], wait)};
  };
  const auto sockets = [](int type, Wait wait) {
    std::array<int, 2> ends{};
    must(::socketpair(AF_UNIX, type, 0, ends.data()) == 0, "socketpair");
    return Link{std::make_unique<Descriptors>(ends[1], ends[0], wait),
                std::make_unique<Descriptors>(::dup(ends[0]), ::dup(ends[1]), wait)};
  };
  const auto tcp = [] {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0), client = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    must(::bind(listener, raw, size) == 0 && ::listen(listener, 1) == 0 && ::getsockname(listener, raw, &size) == 0 &&
             ::connect(client, raw, size) == 0,
         "connecting over loopback");
    const int server = ::accept(listener, nullptr, nullptr), on = 1;
    ::close(listener);
    for (const int end : {client, server}) ::setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return Link{std::make_unique<Descriptors>(server, client),
                std::make_unique<Descriptors>(::dup(client), ::dup(server))};
  };
  switch (pair % kinds.size()) {
    case 0:
      return pipes(Wait::none);
    case 1:
      return sockets(SOCK_STREAM, Wait::none);
    case 2:
      return pipes(Wait::poll);
    case 3:
      return sockets(SOCK_STREAM, Wait::epoll);
    case 4:
      return {std::make_unique<SysvQueue>(), std::make_unique<SysvQueue>()};
    case 5:
      return {std::make_unique<Semaphore>(places), std::make_unique<Semaphore>(places + 8)};
    case 6:
      return {std::make_unique<Event>(places), std::make_unique<Event>(places + 8)};
    case 7:
      return {std::make_unique<Futex>(places, &words[0]), std::make_unique<Futex>(places + 8, &words[1])};
    case 8: {
      const std::string name = "/swapd-torture-" + std::to_string(::getpid()) + "-" + std::to_string(pair);
      return {std::make_unique<Mq>(name), std::make_unique<Mq>(name + "b")};
    }
    case 9:
      return tcp();
    case 10:
      return {std::make_unique<File>(places), std::make_unique<File>(places + 8)};
    default:
      return sockets(SOCK_DGRAM, Wait::poll);
  }
}

}  // namespace torture
