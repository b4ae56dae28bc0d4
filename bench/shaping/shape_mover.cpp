#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <thread>

#include "shaping/shape.h"

namespace swapd::bench {
namespace {

constexpr std::size_t huge_page = 2 << 20;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

}  // namespace

void Mover::Free::operator()(char* bytes) const { std::free(bytes); }

Result<Mover> Mover::make(const std::string& target, std::size_t block, const std::string& place) {
  Mover mover;
  mover.block_ = block;
  // In huge pages: past the cache, a disk takes half as long again for a buffer whose pages lie all over the memory,
  // and how they lie is each process's luck.
  const std::size_t room = (block + huge_page - 1) / huge_page * huge_page;
  mover.buffer_.reset(static_cast<char*>(std::aligned_alloc(huge_page, room)));
  ::madvise(mover.buffer_.get(), room, MADV_HUGEPAGE);
  std::memset(mover.buffer_.get(), 'x', room);
  mover.network_ = target == "tcp" || target == "udp";
  if (mover.network_) {
    // Without SOCK_CLOEXEC: trickle limits no sockets that are made with it.
    mover.file_.reset(::socket(AF_INET, target == "tcp" ? SOCK_STREAM : SOCK_DGRAM, 0));
    const sockaddr_in to = loopback(std::stoi(place));
    if (!mover.file_ || ::connect(mover.file_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
      return errno_error("connecting to the sink");
    return mover;
  }
  mover.writes_ = target == "write";
  mover.cold_ = target == "disk-cold";
  const int how = mover.writes_ ? O_WRONLY : O_RDONLY | (target == "disk-device" ? O_DIRECT : 0);
  mover.file_.reset(::open(place.c_str(), how | O_CLOEXEC));
  struct stat st {};
  if (!mover.file_ || ::fstat(mover.file_.get(), &st) != 0) return errno_error(place);
  mover.size_ = st.st_size / static_cast<off_t>(block) * static_cast<off_t>(block);
  if (mover.size_ == 0) return Error(EINVAL, place + " is smaller than a block");
  return mover;
}

ssize_t Mover::move() {
  if (network_) return ::send(file_.get(), buffer_.get(), block_, MSG_NOSIGNAL);
  const ssize_t n =
      writes_ ? ::pwrite(file_.get(), buffer_.get(), block_, at_) : ::pread(file_.get(), buffer_.get(), block_, at_);
  if (n > 0) at_ = (at_ + n) % size_;
  return n;
}

void Mover::drop_cache() {
  if (cold_) ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED);  // its pages are clean
}

struct Sink::Impl {
  Fd socket;
  int port = 0;
  bool stream = false;
  std::atomic<bool> stop{false};
  std::list<std::thread> threads;
};

Sink::Sink() : impl_(std::make_unique<Impl>()) {}

Status Sink::open(bool stream) {
  impl_->stream = stream;
  impl_->socket.reset(::socket(AF_INET, (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  const timeval look{.tv_sec = 0, .tv_usec = 50'000};
  ::setsockopt(impl_->socket.get(), SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
  if (!impl_->socket || ::bind(impl_->socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      (stream && ::listen(impl_->socket.get(), 64) != 0) ||
      ::getsockname(impl_->socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return errno_error("opening a sink");
  impl_->port = ntohs(address.sin_port);
  const auto drain = [this](int fd) {
    std::vector<char> bytes(1 << 20);
    while (!impl_->stop) {
      const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), 0);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return;
    }
  };
  impl_->threads.emplace_back([this, drain, look] {
    if (!impl_->stream) return drain(impl_->socket.get());
    std::list<std::thread> connections;
    while (!impl_->stop) {
      Fd connection(::accept4(impl_->socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection) continue;
      ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
      connections.emplace_back([drain, fd = connection.release()] {
        const Fd own(fd);
        drain(own.get());
      });
    }
    for (std::thread& one : connections) one.join();
  });
  return Done{};
}

Sink::~Sink() {
  impl_->stop = true;
  for (std::thread& one : impl_->threads) one.join();
}

int Sink::port() const { return impl_->port; }

Status make_file(const std::string& path, std::size_t size) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const std::vector<char> block(1 << 20, 'x');
  for (std::size_t done = 0; file && done < size;) {
    const ssize_t n = ::write(file.get(), block.data(), std::min(block.size(), size - done));
    if (n <= 0) return errno_error(path);
    done += static_cast<std::size_t>(n);
  }
  if (!file || ::fsync(file.get()) != 0) return errno_error(path);
  return Done{};
}

}  // namespace swapd::bench
