#include "harness/shared.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <new>
#include <utility>

namespace swapd::bench {

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)), memory_(std::exchange(other.memory_, nullptr)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(memory_, other.memory_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (memory_ != nullptr) ::munmap(memory_, sizeof(Shared));
}

Result<SharedMemory> SharedMemory::create() {
  Fd fd(::memfd_create("swapbench", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), sizeof(Shared)) != 0) return errno_error("creating shared memory");
  auto memory = map(fd.get());
  if (!memory) return memory;
  new (memory->memory_) Shared;
  memory->fd_ = std::move(fd);
  return memory;
}

Result<SharedMemory> SharedMemory::map(int fd) {
  void* where = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (where == MAP_FAILED) return errno_error("mapping shared memory");
  SharedMemory memory;
  memory.memory_ = static_cast<Shared*>(where);
  return memory;
}

// SEQPACKET keeps the lines apart without any parsing.
Result<ChannelPair> make_channel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return errno_error("control channel");
  return ChannelPair{Fd(ends[0]), Fd(ends[1])};
}

Status send_line(int channel, const std::string& line) {
  if (::send(channel, line.data(), line.size(), MSG_NOSIGNAL) < 0) return errno_error("control channel");
  return Done{};
}

Result<std::string> receive_line(int channel, int timeout_ms) {
  pollfd wanted{channel, POLLIN, 0};
  const int ready = ::poll(&wanted, 1, timeout_ms);
  if (ready < 0) return errno_error("control channel");
  if (ready == 0) return Error(ETIMEDOUT, "control channel");
  std::string line(1024, '\0');
  const ssize_t size = ::recv(channel, line.data(), line.size(), 0);
  if (size < 0) return errno_error("control channel");
  if (size == 0) return Error(ECONNRESET, "control channel");
  line.resize(static_cast<std::size_t>(size));
  return line;
}

namespace {

// One byte and room for one descriptor, cmsg(3).
struct FdMessage {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  FdMessage() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
  }
  FdMessage(const FdMessage&) = delete;
  FdMessage& operator=(const FdMessage&) = delete;
  ~FdMessage() = default;
};

}  // namespace

Fd receive_fd(int channel, int flags) {
  FdMessage with;
  if (::recvmsg(channel, &with.message, MSG_CMSG_CLOEXEC | flags) != 1) return Fd();
  const cmsghdr* header = CMSG_FIRSTHDR(&with.message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return Fd();
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return Fd(fd);
}

Status send_fd(int channel, int fd) {
  FdMessage with;
  cmsghdr* header = CMSG_FIRSTHDR(&with.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (::sendmsg(channel, &with.message, MSG_NOSIGNAL) != 1) return errno_error("sendmsg");
  return Done{};
}

}  // namespace swapd::bench
