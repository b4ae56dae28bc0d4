#include "sys/netlink/proc_events.h"

#include <arpa/inet.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace swapd::sys {
namespace {

constexpr int receive_buffer = 4 << 20;  // some 20 000 events: a fork storm while the control thread is busy
constexpr std::size_t event_at = NLMSG_HDRLEN + sizeof(cn_msg);
constexpr std::chrono::milliseconds acknowledge_within{500};

// Types of old: since 6.x headers they are an enum outside proc_event, before it one inside. The numbers are the
// interface.
constexpr std::uint32_t what_none = 0;
constexpr std::uint32_t what_fork = 1;
constexpr std::uint32_t what_exec = 2;
constexpr std::uint32_t what_uid = 4;
constexpr std::uint32_t what_comm = 0x200;
constexpr std::uint32_t what_exit = 0x80000000;

std::vector<std::uint32_t> numbers_of(const ProcEvents::Wanted& wanted) {
  std::vector<std::uint32_t> numbers;
  if (wanted.fork) numbers.push_back(what_fork);
  if (wanted.exec) numbers.push_back(what_exec);
  if (wanted.exit) numbers.push_back(what_exit);
  if (wanted.other_user) numbers.push_back(what_uid);
  if (wanted.renamed) numbers.push_back(what_comm);
  return numbers;
}

// The kernel sends all kinds of events. A classic BPF program on the socket drops what is not wanted before it takes
// room (socket(7), SO_ATTACH_FILTER); it loads in network order.
Status drop_other_events(int fd, std::vector<std::uint32_t> numbers) {
  const std::uint32_t at = event_at;
  numbers.push_back(what_none);  // the answer to our request
  std::vector<sock_filter> code{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)};
  for (std::size_t left = numbers.size(); const std::uint32_t number : numbers)
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(number), static_cast<std::uint8_t>(left--), 0));
  code.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  code.push_back(BPF_STMT(BPF_RET | BPF_K, UINT32_MAX));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
    return errno_error("filtering process events");
  return Done{};
}

// False: errno says why.
template <typename Payload>
bool send_to_connector(int fd, const Payload& payload) {
  struct {
    nlmsghdr header;
    std::byte rest[sizeof(cn_msg) + sizeof(Payload)];
  } message{};
  cn_msg connector{};
  connector.id.idx = CN_IDX_PROC;
  connector.id.val = CN_VAL_PROC;
  connector.len = sizeof payload;
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = NLMSG_DONE;
  std::memcpy(message.rest, &connector, sizeof connector);
  std::memcpy(message.rest + sizeof connector, &payload, sizeof payload);
  return ::send(fd, &message, sizeof message, 0) >= 0;
}

// Since 6.6 the kernel leaves out for a socket what it does not name in a longer message; before, it takes no notice of
// such a one. (struct proc_input, which older headers lack.)
void leave_out_others(int fd, const std::vector<std::uint32_t>& numbers) {
  struct Narrow {
    std::uint32_t operation = PROC_CN_MCAST_LISTEN;
    std::uint32_t events = 0;
  } narrow;
  for (const std::uint32_t number : numbers) narrow.events |= number;
  (void)send_to_connector(fd, narrow);
}

Status request(int fd, proc_cn_mcast_op operation) {
  if (!send_to_connector(fd, operation)) return errno_error("asking for process events");
  return Done{};
}

struct Received {
  bool answer = false;  // to our request
  std::uint32_t error = 0;
  std::optional<ProcEvent> event;
};

ProcEvent make_event(ProcEvent::What what, pid_t tid, pid_t tgid) {
  ProcEvent out;
  out.what = what;
  out.tid = tid;
  out.tgid = tgid;
  return out;
}

// One datagram; EAGAIN: none is there. Whatever is not from the kernel or not understood is an empty Received.
Result<Received> receive_one(int fd) {
  alignas(nlmsghdr) std::array<std::byte, 512> buffer;
  sockaddr_nl from{};
  socklen_t from_size = sizeof from;
  const ssize_t n =
      ::recvfrom(fd, buffer.data(), buffer.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &from_size);
  if (n < 0) return errno_error("reading process events");
  Received out;
  const auto size = static_cast<std::size_t>(n);
  if (from.nl_pid != 0 || size < event_at + offsetof(proc_event, event_data)) return out;
  proc_event raw{};
  std::memcpy(&raw, buffer.data() + event_at, std::min(size - event_at, sizeof raw));
  switch (static_cast<std::uint32_t>(raw.what)) {
    case what_none:
      out.answer = true;
      out.error = raw.event_data.ack.err;
      break;
    case what_fork:
      out.event = make_event(ProcEvent::What::fork, raw.event_data.fork.child_pid, raw.event_data.fork.child_tgid);
      out.event->parent_tid = raw.event_data.fork.parent_pid;
      out.event->parent_tgid = raw.event_data.fork.parent_tgid;
      // The kernel sends real_parent: for a thread that is the parent of its process.
      if (out.event->tid != out.event->tgid) out.event->parent_tid = out.event->parent_tgid = out.event->tgid;
      break;
    case what_exec:
      out.event = make_event(ProcEvent::What::exec, raw.event_data.exec.process_pid, raw.event_data.exec.process_tgid);
      break;
    case what_exit:
      out.event = make_event(ProcEvent::What::exit, raw.event_data.exit.process_pid, raw.event_data.exit.process_tgid);
      break;
    case what_uid:
      out.event =
          make_event(ProcEvent::What::other_user, raw.event_data.id.process_pid, raw.event_data.id.process_tgid);
      break;
    case what_comm:
      out.event =
          make_event(ProcEvent::What::renamed, raw.event_data.comm.process_pid, raw.event_data.comm.process_tgid);
      break;
    default:
      break;
  }
  const bool of_process =
      out.event && (out.event->what == ProcEvent::What::renamed || out.event->what == ProcEvent::What::other_user);
  if (of_process && out.event->tid != out.event->tgid) out.event.reset();
  return out;
}

// Outside the initial pid and user namespaces the kernel takes the request and says nothing, ever.
Status await_answer(int fd) {
  const auto deadline = std::chrono::steady_clock::now() + acknowledge_within;
  for (;;) {
    auto received = receive_one(fd);
    if (received && received->answer) {
      if (received->error == 0) return Done{};
      return Error(static_cast<int>(received->error), "asking for process events");
    }
    if (!received && received.error().code() != EAGAIN && received.error().code() != ENOBUFS)
      return std::move(received).error();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      return Error(EOPNOTSUPP, "asking for process events: no answer outside the initial namespaces");
    pollfd entry{fd, POLLIN, 0};
    ::poll(&entry, 1, static_cast<int>(left.count()));
  }
}

}  // namespace

ProcEvents::ProcEvents(nl_sock* socket) : socket_(socket) {}

ProcEvents::~ProcEvents() {
  // Before 6.6 the kernel counts listeners by these messages only.
  (void)request(fd(), PROC_CN_MCAST_IGNORE);
  nl_socket_free(socket_);
}

Result<std::unique_ptr<ProcEvents>> ProcEvents::open(const Wanted& wanted) {
  const std::vector<std::uint32_t> numbers = numbers_of(wanted);
  nl_sock* socket = nl_socket_alloc();
  if (socket == nullptr) return Error(ENOMEM, "opening the process connector");
  // libnl's errors are its own; errno is what tells the reason.
  errno = 0;
  if (nl_connect(socket, NETLINK_CONNECTOR) != 0) {
    Error error = errno_error("opening the process connector");
    nl_socket_free(socket);
    return error;
  }
  std::unique_ptr<ProcEvents> events(new ProcEvents(socket));
  const int fd = events->fd();
  nl_socket_set_nonblocking(socket);
  // FORCE goes past net.core.rmem_max; it needs the CAP_NET_ADMIN that joining the group needs anyway.
  if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive_buffer, sizeof receive_buffer) != 0)
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  if (Status filtered = drop_other_events(fd, numbers); !filtered) return std::move(filtered).error();
  errno = 0;
  if (nl_socket_add_membership(socket, CN_IDX_PROC) != 0)
    return errno_error("joining the process events (CAP_NET_ADMIN)");
  if (Status asked = request(fd, PROC_CN_MCAST_LISTEN); !asked) return std::move(asked).error();
  if (Status answered = await_answer(fd); !answered) return std::move(answered).error();
  leave_out_others(fd, numbers);
  return events;
}

int ProcEvents::fd() const { return nl_socket_get_fd(socket_); }

Result<std::size_t> ProcEvents::read(ProcEvent* out, std::size_t most) {
  std::size_t count = 0;
  while (count < most) {
    auto received = receive_one(fd());
    if (received) {
      if (received->event) out[count++] = *received->event;
      continue;
    }
    if (received.error().code() == EAGAIN) break;
    if (received.error().code() == EINTR) continue;
    // ENOBUFS comes once for each overflow. What was read before it goes with it: the caller looks at everything anew.
    return std::move(received).error();
  }
  return count;
}

}  // namespace swapd::sys
