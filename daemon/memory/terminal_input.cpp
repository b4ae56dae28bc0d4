#include "memory/terminal_input.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "sys/process/pidfd.h"
#include "sys/procfs/procfs_read.h"

namespace swapd::daemon {

namespace {

constexpr std::size_t most = 64;  // descriptors of a process that are looked at

bool is_terminal(const std::string& link) {
  std::array<char, 256> target;
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  const std::string_view name(target.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return name.starts_with("/dev/pts/") || name.starts_with("/dev/tty");
}

}  // namespace

TerminalInput::TerminalInput(const sys::Procfs& procfs) : procfs_(procfs), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void TerminalInput::watch(pid_t tgid) {
  const auto stat = procfs_.stat(tgid);
  if (!stat || stat->terminal == 0 || stat->group != stat->foreground) return;
  const auto pidfd = sys::open_pidfd(tgid);
  if (!pidfd) return;
  const std::string directory = "/proc/" + std::to_string(tgid) + "/fd";
  int error = 0;
  for (const int number : sys::numbered_entries<int>(directory.c_str(), error, most)) {
    if (!is_terminal(directory + "/" + std::to_string(number))) continue;
    auto copy = sys::take_fd(pidfd->get(), number);
    epoll_event wanted{.events = EPOLLIN, .data = {.u64 = static_cast<std::uint64_t>(tgid)}};
    if (!copy || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, copy->get(), &wanted) != 0) continue;
    watched_[tgid].push_back(std::move(copy).value());
  }
}

std::vector<pid_t> TerminalInput::ready() const {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  std::vector<pid_t> out;
  for (int i = 0; i < count; ++i) {
    const auto tgid = static_cast<pid_t>(events[static_cast<std::size_t>(i)].data.u64);
    if ((events[static_cast<std::size_t>(i)].events & EPOLLIN) != 0 && std::ranges::find(out, tgid) == out.end())
      out.push_back(tgid);
  }
  return out;
}

}  // namespace swapd::daemon
