#include "sys/netlink/socket_route.h"

#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>

#ifndef SIOCGSKNS
#define SIOCGSKNS 0x894C  // linux/sockios.h
#endif

namespace swapd::sys {
namespace {

constexpr std::chrono::milliseconds answer_within{500};

struct Address {
  int family = AF_UNSPEC;
  std::array<std::byte, 16> bytes{};
  std::size_t size = 0;
  [[nodiscard]] bool known() const {
    return size != 0 && std::any_of(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size),
                                    [](std::byte b) { return b != std::byte{0}; });
  }
};

// An IPv4 address in IPv6's clothes is one of IPv4.
Address address_of(std::span<const std::byte> raw) {
  Address out;
  sockaddr_storage all{};
  std::memcpy(&all, raw.data(), std::min(raw.size(), sizeof all));
  if (all.ss_family == AF_INET && raw.size() >= sizeof(sockaddr_in)) {
    sockaddr_in v4{};
    std::memcpy(&v4, &all, sizeof v4);
    out = {.family = AF_INET, .bytes = {}, .size = sizeof v4.sin_addr};
    std::memcpy(out.bytes.data(), &v4.sin_addr, out.size);
  } else if (all.ss_family == AF_INET6 && raw.size() >= sizeof(sockaddr_in6) - sizeof(std::uint32_t)) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &all, sizeof v6);
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
    out = {.family = mapped ? AF_INET : AF_INET6, .bytes = {}, .size = mapped ? sizeof(in_addr) : sizeof(in6_addr)};
    std::memcpy(out.bytes.data(), reinterpret_cast<const std::byte*>(&v6.sin6_addr) + (mapped ? 12 : 0), out.size);
  }
  return out;
}

template <typename Ask>
Address asked(int socket, Ask ask) {
  sockaddr_storage all{};
  socklen_t size = sizeof all;
  if (ask(socket, reinterpret_cast<sockaddr*>(&all), &size) != 0) return {};
  return address_of({reinterpret_cast<const std::byte*>(&all), std::min<std::size_t>(size, sizeof all)});
}

int option(int socket, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, level, name, &value, &size) == 0 ? value : 0;
}

struct FreeMessage {
  void operator()(nl_msg* message) const { nlmsg_free(message); }
};
using Message = std::unique_ptr<nl_msg, FreeMessage>;

// One question to rtnetlink, in the namespace that the thread is in. `take` gets each answer.
bool ask_kernel(nl_msg* question, const std::function<void(nlmsghdr*)>& take) {
  const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  const timeval wait{.tv_sec = 0, .tv_usec = std::chrono::microseconds(answer_within).count()};
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0) return false;
  const nlmsghdr* header = nlmsg_hdr(question);
  if (::send(socket.get(), header, header->nlmsg_len, 0) < 0) return false;
  alignas(nlmsghdr) std::array<char, 32768> buffer;
  for (;;) {
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) return false;
    int left = static_cast<int>(got);
    for (auto* one = reinterpret_cast<nlmsghdr*>(buffer.data()); nlmsg_ok(one, left); one = nlmsg_next(one, &left)) {
      if (one->nlmsg_type == NLMSG_DONE) return true;
      if (one->nlmsg_type == NLMSG_ERROR) return false;
      take(one);
      if ((one->nlmsg_flags & NLM_F_MULTI) == 0) return true;
    }
  }
}

// The kernel's own choice for a packet to there.
std::uint32_t link_of_route(const Address& to) {
  const Message question(nlmsg_alloc_simple(RTM_GETROUTE, NLM_F_REQUEST));
  if (!question) return 0;
  rtmsg route{};
  route.rtm_family = static_cast<unsigned char>(to.family);
  route.rtm_dst_len = static_cast<unsigned char>(to.size * 8);
  nlmsg_append(question.get(), &route, sizeof route, NLMSG_ALIGNTO);
  nla_put(question.get(), RTA_DST, static_cast<int>(to.size), to.bytes.data());
  std::uint32_t index = 0;
  ask_kernel(question.get(), [&](nlmsghdr* answer) {
    if (answer->nlmsg_type != RTM_NEWROUTE) return;
    if (const nlattr* link = nlmsg_find_attr(answer, sizeof(rtmsg), RTA_OIF)) index = nla_get_u32(link);
  });
  return index;
}

std::uint32_t link_of_own(const Address& own) {
  const Message question(nlmsg_alloc_simple(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP));
  if (!question) return 0;
  ifaddrmsg which{};
  which.ifa_family = static_cast<unsigned char>(own.family);
  nlmsg_append(question.get(), &which, sizeof which, NLMSG_ALIGNTO);
  std::uint32_t index = 0;
  ask_kernel(question.get(), [&](nlmsghdr* answer) {
    if (answer->nlmsg_type != RTM_NEWADDR) return;
    const auto* about = static_cast<const ifaddrmsg*>(nlmsg_data(answer));
    const nlattr* address = nlmsg_find_attr(answer, sizeof(ifaddrmsg), IFA_LOCAL);
    if (address == nullptr) address = nlmsg_find_attr(answer, sizeof(ifaddrmsg), IFA_ADDRESS);
    if (address != nullptr && static_cast<std::size_t>(nla_len(address)) == own.size &&
        std::memcmp(nla_data(address), own.bytes.data(), own.size) == 0)
      index = about->ifa_index;
  });
  return index;
}

std::uint64_t own_namespace() {
  static const std::uint64_t inode = [] {
    struct stat st {};
    return ::stat("/proc/self/ns/net", &st) == 0 ? st.st_ino : 0;
  }();
  return inode;
}

}  // namespace

Result<SocketLink> link_of(int socket, std::span<const std::byte> to) {
  SocketLink out;
  const int domain = option(socket, SOL_SOCKET, SO_DOMAIN);
  out.inet = domain == AF_INET || domain == AF_INET6;
  if (!out.inet) return out;
  out.network_namespace = own_namespace();
  Fd elsewhere(::ioctl(socket, SIOCGSKNS));
  if (elsewhere) {
    ::fcntl(elsewhere.get(), F_SETFD, FD_CLOEXEC);
    struct stat st {};
    if (::fstat(elsewhere.get(), &st) == 0) out.network_namespace = st.st_ino;
    if (out.network_namespace == own_namespace()) elsewhere.reset();
  }
  if (const int bound = option(socket, SOL_SOCKET, SO_BINDTOIFINDEX); bound > 0) {
    out.index = static_cast<std::uint32_t>(bound);
    return out;
  }
  Address peer = asked(socket, ::getpeername);
  out.connected = peer.size != 0;
  if (!peer.known() && !to.empty()) peer = address_of(to);
  const Address own = asked(socket, ::getsockname);
  const auto look = [&] {
    if (peer.known()) out.index = link_of_route(peer);
    if (out.index == 0 && own.known()) out.index = link_of_own(own);
  };
  if (!peer.known() && !own.known()) return out;
  if (!elsewhere) {
    look();
    return out;
  }
  // setns(2) moves only the calling thread; this one ends right after.
  try {
    std::thread([&] {
      if (::setns(elsewhere.get(), CLONE_NEWNET) == 0) look();
    }).join();
  } catch (const std::system_error&) {  // no thread is to be had: the link is not known
  }
  return out;
}

Result<SocketLink> link_named(const std::string& name) {
  const unsigned index = ::if_nametoindex(name.c_str());
  if (index == 0) return Error(ENODEV, "no network link '" + name + "'");
  return SocketLink{.inet = true, .network_namespace = own_namespace(), .index = index};
}

std::string link_name(std::uint64_t network_namespace, std::uint32_t index) {
  std::array<char, IF_NAMESIZE> name{};
  if (network_namespace == own_namespace() && ::if_indextoname(index, name.data()) != nullptr) return name.data();
  return "netns:" + std::to_string(network_namespace) + "#" + std::to_string(index);
}

}  // namespace swapd::sys
