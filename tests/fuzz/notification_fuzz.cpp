// Any call with any arguments, which point into memory with any content: what a notification, a slot or
// /proc/TID/syscall says of a program that means harm. The memory and the descriptors are this process's own.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "observe/io/io_calls.h"
#include "observe/resolve/resolver.h"
#include "observe/resolve/syscall_table.h"
#include "sys/netlink/sock_diag.h"
#include "sys/procfs/procfs.h"

namespace {

using namespace swapd;

constexpr std::size_t memory_size = 8192;

// A few of each kind, at the numbers that the arguments most often name.
void open_descriptors() {
  int ends[2];
  if (::pipe(ends) != 0 || ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  const int set = ::epoll_create1(0);
  epoll_event event{.events = EPOLLIN, .data = {}};
  ::epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
  if (::eventfd(0, 0) < 0 || ::socket(AF_INET, SOCK_DGRAM, 0) < 0 || ::open("/dev/null", O_RDWR) < 0) std::abort();
}

std::uint8_t* memory() {
  static auto* const mapped = [] {
    open_descriptors();
    void* made = ::mmap(nullptr, memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) std::abort();
    return static_cast<std::uint8_t*>(made);
  }();
  return mapped;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sys::Procfs procfs;
  static sys::SockDiag diag;
  struct Start {
    std::uint16_t nr;
    std::uint8_t kinds;  // a bit for each argument: an address
    std::uint8_t compat;
    std::array<std::uint32_t, 6> args;
  } start{};
  if (size < sizeof start) return 0;
  std::memcpy(&start, data, sizeof start);
  std::memset(memory(), 0, memory_size);
  std::memcpy(memory(), data + sizeof start, std::min(size - sizeof start, memory_size));
  observe::CallSite site{.tid = ::getpid(), .tgid = ::getpid(), .nr = start.nr % 512};
  for (std::size_t i = 0; i < site.args.size(); ++i)
    site.args.at(i) = (start.kinds >> i & 1) != 0
                          ? reinterpret_cast<std::uint64_t>(memory()) + start.args.at(i) % memory_size
                          : start.args.at(i);
  observe::Resolver resolver(procfs, diag);
  const auto bounded = [](const std::vector<Resource>& resources) {
    if (resources.size() > 4096) std::abort();
    for (const Resource& resource : resources)
      if (text(resource).empty()) std::abort();
  };
  bounded(resolver.quick(site).awaited);
  bounded(resolver.full(site).awaited);
  bounded(resolver.access(site).accessed);
  bounded(resolver.full_access(site).accessed);
  static_cast<void>(observe::call_name(site.nr));
  if (const observe::IoCall* call = observe::io_call(site.nr)) {
    const auto read = [](std::uint64_t address, void* out, std::size_t bytes) {
      return sys::Procfs::read_memory(::getpid(), address, out, bytes);
    };
    if (const auto bytes = observe::asked(*call, site.args, read); bytes && (*bytes < 1 || *bytes > 0x7ffff000))
      std::abort();
  }
  return 0;
}
