// A wait in io_uring_enter(2) is one for all its outstanding requests, each like the call that it stands for.
#include <linux/io_uring.h>
#include <poll.h>

#include "observe/resolve/resolver_impl.h"
#include "observe/resolve/wait_sets.h"
#include "sys/bpf/bpf_pieces.h"

namespace swapd::observe {

namespace {

// Of kernels that are newer than the headers.
constexpr std::uint8_t read_multishot = 49;     // IORING_OP_READ_MULTISHOT, since 6.7
constexpr std::uint8_t receive_zero_copy = 58;  // IORING_OP_RECV_ZC, since 6.15
constexpr std::uint8_t epoll_wait = 59;         // IORING_OP_EPOLL_WAIT, since 6.15
constexpr std::uint8_t readv_fixed = 60;        // IORING_OP_READV_FIXED, since 6.15
constexpr std::uint8_t writev_fixed = 61;       // IORING_OP_WRITEV_FIXED
constexpr unsigned registered_ring = 1U << 4U;  // IORING_ENTER_REGISTERED_RING, since 5.18

struct Directions {
  bool in = false;
  bool out = false;
};

Directions directions(const sys::RingRequest& request) {
  switch (request.opcode) {
    case IORING_OP_READV:
    case IORING_OP_READ_FIXED:
    case IORING_OP_READ:
    case IORING_OP_RECVMSG:
    case IORING_OP_RECV:
    case IORING_OP_ACCEPT:
    case read_multishot:
    case receive_zero_copy:
    case readv_fixed:
    case epoll_wait:
      return {.in = true};
    case IORING_OP_WRITEV:
    case IORING_OP_WRITE_FIXED:
    case IORING_OP_WRITE:
    case IORING_OP_SENDMSG:
    case IORING_OP_SEND:
    case IORING_OP_SEND_ZC:
    case IORING_OP_SENDMSG_ZC:
    case writev_fixed:
    case IORING_OP_CONNECT:
      return {.out = true};
    case IORING_OP_POLL_ADD:
      return {.in = (request.events & (POLLIN | POLLRDNORM | POLLRDHUP | POLLPRI)) != 0,
              .out = (request.events & (POLLOUT | POLLWRNORM)) != 0};
    default:
      return {};
  }
}

}  // namespace

// The file of a request. Its number may be another's by now, even while it is looked at.
std::optional<Descriptor> Resolver::Impl::file_of(const CallSite& site, const sys::RingRequest& request) {
  if (request.fd >= 0) {
    const auto now = procfs.fd_identity(site.tid, request.fd);
    if (now.ok() && now->ino == request.ino && now->dev == request.dev) {
      const auto file = descriptors.look(site.tid, request.fd, *now);
      return file.ok() ? std::optional(*file) : std::nullopt;
    }
  }
  return descriptors.from_inode(request.dev, request.ino);
}

void Resolver::Impl::wait_on_request(Wait& wait, const CallSite& site, const sys::RingRequest& request) {
  const auto file = file_of(site, request);
  const Directions to = directions(request);
  if (!file || (!to.in && !to.out)) {
    add(wait.awaited, unknown_resource);
  } else if (request.opcode == IORING_OP_ACCEPT) {
    add(wait.awaited, socket_endpoint(file->ino));
  } else if (file->type == Descriptor::Type::epoll) {
    for (const WaitMember& member : epoll_members(procfs, descriptors, site.tid, request.fd))
      wait_on(wait, site, member.descriptor, member.direction, By::worker);
  } else {
    if (to.in) wait_on(wait, site, *file, Direction::in, By::worker);
    if (to.out) wait_on(wait, site, *file, Direction::out, By::worker);
  }
}

void Resolver::Impl::open_rings() {
  rings = sys::RingRequests::open();
  const Status lists_any = rings->ok() ? (**rings)->lists_any_thread() : Done{};
  const std::lock_guard lock(mutex);
  if (!rings->ok())
    missing.push_back({"which requests of an io_uring are under way (rings.list_requests)",
                       sys::refusal_of(rings->error()), "a wait in io_uring_enter names nobody"});
  else if (!lists_any)
    missing.push_back({"requests that threads other than a process's first make of an io_uring",
                       "the kernel iterates over a process's first thread alone",
                       "their waits in io_uring_enter name nobody"});
}

void Resolver::Impl::wait_on_ring(Wait& wait, const CallSite& site) {
  if (!rings) open_rings();
  if (rings->ok()) {
    const auto requests = (**rings)->list(site.tid, fd_of(site, 0), (site.args[3] & registered_ring) != 0);
    if (requests.ok())
      for (const sys::RingRequest& request : *requests) wait_on_request(wait, site, request);
  }
  // Files on disk, timeouts, the requests of a ring that cannot be read.
  if (wait.awaited.empty()) add(wait.awaited, unknown_resource);
}

std::vector<MissingPiece> Resolver::missing() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->missing;
}

}  // namespace swapd::observe
