#include "sys/netlink/sock_diag.h"

#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>

namespace swapd::sys {

namespace {

constexpr int tcp_listen = 10;    // TCP_LISTEN of the kernel's tcp_states.h; unix sockets use the same number
constexpr int tcp_time_wait = 6;  // no process has those any more, and a busy server leaves tens of thousands
constexpr std::size_t max_sockets = 1U << 17;  // of one dump

struct MessageFree {
  void operator()(nl_msg* message) const { nlmsg_free(message); }
};
struct CallbackPut {
  void operator()(nl_cb* callbacks) const { nl_cb_put(callbacks); }
};
using Visit = std::function<void(nlmsghdr*)>;

int on_valid(nl_msg* message, void* visit) {
  (*static_cast<Visit*>(visit))(nlmsg_hdr(message));
  return NL_OK;
}

int on_error(sockaddr_nl* /*from*/, nlmsgerr* error, void* code) {
  *static_cast<int*>(code) = -error->error;
  return NL_STOP;
}

// The sets changed while they were dumped: sockets that stayed are all there, and others are found at the next look.
int on_interrupted(nl_msg* /*message*/, void* /*unused*/) { return NL_OK; }

// Sends one request and hands each answer to visit.
template <typename Request>
Status ask(nl_sock* socket, const Request& request, int flags, Visit visit) {
  const std::unique_ptr<nl_msg, MessageFree> message(nlmsg_alloc_simple(SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | flags));
  Request copy = request;
  if (!message || nlmsg_append(message.get(), &copy, sizeof copy, NLMSG_ALIGNTO) < 0) return Error(ENOMEM, "sock_diag");
  if (const int sent = nl_send_auto(socket, message.get()); sent < 0)
    return Error(EIO, std::string("sock_diag: ") + nl_geterror(sent));
  const std::unique_ptr<nl_cb, CallbackPut> callbacks(nl_cb_alloc(NL_CB_DEFAULT));
  if (!callbacks) return Error(ENOMEM, "sock_diag");
  int error = 0;
  nl_cb_set(callbacks.get(), NL_CB_VALID, NL_CB_CUSTOM, on_valid, &visit);
  nl_cb_set(callbacks.get(), NL_CB_DUMP_INTR, NL_CB_CUSTOM, on_interrupted, nullptr);
  nl_cb_err(callbacks.get(), NL_CB_CUSTOM, on_error, &error);
  const int received = nl_recvmsgs(socket, callbacks.get());
  if (error != 0) return Error(error, "sock_diag");
  if (received < 0) return Error(EIO, std::string("sock_diag: ") + nl_geterror(received));
  return Done{};
}

template <typename T>
T attribute_as(const nlattr* attribute) {
  T out{};
  std::memcpy(&out, nla_data(attribute), std::min(sizeof out, static_cast<std::size_t>(nla_len(attribute))));
  return out;
}

// Calls visit(attribute) for those behind a fixed header of type Header. By hand, because UNIX_DIAG_NAME is attribute
// 0, which nlmsg_parse() leaves out.
template <typename Header, typename VisitAttribute>
void each_attribute(nlmsghdr* message, const VisitAttribute& visit) {
  nlattr* attribute = nlmsg_attrdata(message, sizeof(Header));
  for (int left = nlmsg_attrlen(message, sizeof(Header)); nla_ok(attribute, left) != 0;
       attribute = nla_next(attribute, &left))
    visit(attribute);
}

UnixSocket unix_answer(nlmsghdr* message) {
  UnixSocket out;
  const auto* fixed = static_cast<const unix_diag_msg*>(nlmsg_data(message));
  out.inode = fixed->udiag_ino;
  out.type = fixed->udiag_type;
  out.listening = fixed->udiag_state == tcp_listen;
  each_attribute<unix_diag_msg>(message, [&](const nlattr* attribute) {
    const auto* bytes = static_cast<const char*>(nla_data(attribute));
    const auto size = static_cast<std::size_t>(nla_len(attribute));
    switch (nla_type(attribute)) {
      case UNIX_DIAG_NAME:
        out.name.assign(bytes, size);
        // A path carries the zero byte at its end; an abstract name is all its bytes.
        if (!out.name.empty() && out.name.front() != 0) out.name.resize(std::strlen(out.name.c_str()));
        break;
      case UNIX_DIAG_VFS: {
        const auto file = attribute_as<unix_diag_vfs>(attribute);
        out.file_inode = file.udiag_vfs_ino;
        out.file_dev = makedev(file.udiag_vfs_dev >> 20, file.udiag_vfs_dev & 0xfffffU);
        break;
      }
      case UNIX_DIAG_PEER:
        out.peer = attribute_as<std::uint32_t>(attribute);
        break;
      case UNIX_DIAG_ICONS:
        for (std::size_t at = 0; at + sizeof(std::uint32_t) <= size; at += sizeof(std::uint32_t)) {
          std::uint32_t inode = 0;
          std::memcpy(&inode, bytes + at, sizeof inode);
          out.pending.push_back(inode);
        }
        break;
      default:
        break;
    }
  });
  return out;
}

InetAddress address(int family, const std::uint32_t* words, std::uint16_t port) {
  InetAddress out;
  out.port = ntohs(port);
  if (family == AF_INET) {
    out.bytes[10] = out.bytes[11] = 0xff;
    std::memcpy(out.bytes.data() + 12, words, 4);
  } else {
    std::memcpy(out.bytes.data(), words, 16);
  }
  return out;
}

InetSocket inet_answer(nlmsghdr* message, int protocol) {
  const auto* fixed = static_cast<const inet_diag_msg*>(nlmsg_data(message));
  InetSocket out;
  out.inode = fixed->idiag_inode;
  out.protocol = protocol;
  out.listening = protocol == IPPROTO_TCP && fixed->idiag_state == tcp_listen;
  out.v6 = fixed->idiag_family == AF_INET6;
  out.local = address(fixed->idiag_family, fixed->id.idiag_src, fixed->id.idiag_sport);
  out.remote = address(fixed->idiag_family, fixed->id.idiag_dst, fixed->id.idiag_dport);
  each_attribute<inet_diag_msg>(message, [&](const nlattr* attribute) {
    if (nla_type(attribute) == INET_DIAG_SKV6ONLY) out.v6_only = attribute_as<std::uint8_t>(attribute) != 0;
  });
  return out;
}

constexpr std::uint32_t unix_shows = UDIAG_SHOW_NAME | UDIAG_SHOW_VFS | UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS;

unix_diag_req any_unix_socket() {
  unix_diag_req request{};
  request.sdiag_family = AF_UNIX;
  request.udiag_states = ~0U;
  request.udiag_show = unix_shows;
  return request;
}

Result<nl_sock*> open_here() {
  nl_sock* socket = nl_socket_alloc();
  if (socket == nullptr) return Error(ENOMEM, "netlink");
  nl_socket_disable_auto_ack(socket);
  nl_socket_disable_seq_check(socket);  // one question at a time, and a failed one closes the socket
  if (const int error = nl_connect(socket, NETLINK_SOCK_DIAG); error < 0) {
    nl_socket_free(socket);
    return Error(EIO, std::string("netlink: ") + nl_geterror(error));
  }
  nl_socket_set_buffer_size(socket, 1 << 20, 0);
  return socket;
}

}  // namespace

bool InetAddress::any() const {
  const bool mapped = bytes[10] == 0xff && bytes[11] == 0xff;
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](auto b) { return b == 0; }) &&
         std::all_of(bytes.begin() + (mapped ? 12 : 10), bytes.end(), [](auto b) { return b == 0; });
}

void SockDiag::Closer::operator()(nl_sock* socket) const { nl_socket_free(socket); }

SockDiag::SockDiag(std::string proc_root) : proc_root_(std::move(proc_root)) {
  struct stat st {};
  if (::stat((proc_root_ + "/thread-self/ns/net").c_str(), &st) == 0) own_namespace_ = st.st_ino;
}

SockDiag::~SockDiag() = default;

Result<nl_sock*> SockDiag::enter(pid_t pid, Socket& other) {
  struct stat st {};
  const std::string path = proc_root_ + "/" + std::to_string(pid) + "/ns/net";
  if (pid != 0 && ::stat(path.c_str(), &st) != 0) return errno_error("network namespace");
  if (pid == 0 || st.st_ino == own_namespace_) {
    if (!own_) {
      const auto opened = open_here();
      if (!opened) return opened.error();
      own_.reset(*opened);
    }
    return own_.get();
  }
  const Fd target(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!target) return errno_error("network namespace");
  Result<nl_sock*> opened = Error(EIO, "network namespace");
  // setns() moves only the calling thread; this one ends right after.
  std::thread([&] {
    opened = ::setns(target.get(), CLONE_NEWNET) == 0 ? open_here() : Result<nl_sock*>(errno_error("setns"));
  }).join();
  if (opened) other.reset(*opened);
  return opened;
}

Result<UnixSocket> SockDiag::unix_socket(pid_t pid, std::uint64_t inode) {
  Socket other;
  const auto socket = enter(pid, other);
  if (!socket) return socket.error();
  unix_diag_req request = any_unix_socket();
  request.udiag_ino = static_cast<std::uint32_t>(inode);
  request.udiag_cookie[0] = request.udiag_cookie[1] = ~0U;
  UnixSocket out;
  const Status asked = ask(*socket, request, 0, [&](nlmsghdr* message) { out = unix_answer(message); });
  if (!asked) {
    if (asked.error().code() != ENOENT) own_.reset();
    return asked.error();
  }
  if (out.inode != inode) return Error(ENOENT, "unix socket");
  return out;
}

Result<std::vector<UnixSocket>> SockDiag::unix_sockets(pid_t pid) {
  Socket other;
  const auto socket = enter(pid, other);
  if (!socket) return socket.error();
  const unix_diag_req request = any_unix_socket();
  std::vector<UnixSocket> out;
  const Status asked = ask(*socket, request, NLM_F_DUMP, [&](nlmsghdr* message) {
    if (out.size() < max_sockets) out.push_back(unix_answer(message));
  });
  if (!asked) {
    own_.reset();
    return asked.error();
  }
  return out;
}

Result<std::vector<InetSocket>> SockDiag::inet_sockets(pid_t pid, int protocol) {
  Socket other;
  const auto socket = enter(pid, other);
  if (!socket) return socket.error();
  std::vector<InetSocket> out;
  for (const int family : {AF_INET, AF_INET6}) {
    inet_diag_req_v2 request{};
    request.sdiag_family = static_cast<std::uint8_t>(family);
    request.sdiag_protocol = static_cast<std::uint8_t>(protocol);
    request.idiag_states = protocol == IPPROTO_TCP ? ~(1U << tcp_time_wait) : ~0U;
    const Status asked = ask(*socket, request, NLM_F_DUMP, [&](nlmsghdr* message) {
      if (out.size() < max_sockets) out.push_back(inet_answer(message, protocol));
    });
    if (!asked && asked.error().code() != ENOENT) {  // ENOENT: no IPv6, no diag module of that protocol
      own_.reset();
      return asked.error();
    }
  }
  return out;
}

}  // namespace swapd::sys
