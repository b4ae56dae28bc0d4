#include "observe/resolve/wait_sets.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>

namespace swapd::observe {

namespace {

class Collector {
 public:
  Collector(const sys::Procfs& procfs, const Descriptors& descriptors, pid_t tid)
      : procfs_(procfs), descriptors_(descriptors), tid_(tid) {}

  void add(int fd, bool in, bool out, int depth) {
    if (!in && !out) return;
    const auto descriptor = descriptors_.look(tid_, fd);
    if (descriptor) add(*descriptor, fd, in, out, depth);
  }

  void add_set(int set, int depth) {
    // A set that is reached twice adds nothing; this also ends the loops that a target may fake.
    if (depth > max_nesting || std::find(sets_.begin(), sets_.end(), set) != sets_.end()) return;
    sets_.push_back(set);
    const auto info = procfs_.fdinfo(tid_, set);
    if (!info) return;
    for (const sys::EpollTarget& target : info->epoll) {
      if (members.size() >= max_members) return;
      const bool in = (target.events & (EPOLLIN | EPOLLRDNORM | EPOLLRDHUP | EPOLLPRI)) != 0;
      const bool out = (target.events & (EPOLLOUT | EPOLLWRNORM)) != 0;
      if (!in && !out) continue;
      // Of a pipe or a socket the line says all, whatever file has its number by now.
      if (const auto known = descriptors_.from_inode(target.dev, target.ino); known && target.ino != 0) {
        add(*known, target.fd, in, out, depth);
        continue;
      }
      // The number was given by the thread that added the member, perhaps of another process, and may be another
      // file's.
      const auto now = procfs_.fd_identity(tid_, target.fd);
      if (now && (target.ino == 0 || (now->ino == target.ino && now->dev == target.dev))) {
        const auto descriptor = descriptors_.look(tid_, target.fd, *now);
        if (descriptor) add(*descriptor, target.fd, in, out, depth);
      }
    }
  }

  std::vector<WaitMember> members;

 private:
  void add(const Descriptor& descriptor, int fd, bool in, bool out, int depth) {
    if (descriptor.type == Descriptor::Type::epoll) {
      if (in) add_set(fd, depth + 1);
      return;
    }
    for (const Direction direction : {Direction::in, Direction::out}) {
      if (direction == Direction::in ? !in : !out) continue;
      const bool known = std::any_of(members.begin(), members.end(), [&](const WaitMember& m) {
        return m.descriptor == descriptor && m.direction == direction;
      });
      // Descriptors of type `other` are told apart by their numbers alone; one of them says as much as many.
      if (!known && members.size() < max_members) members.push_back({descriptor, direction, fd});
    }
  }

  const sys::Procfs& procfs_;
  const Descriptors& descriptors_;
  pid_t tid_;
  std::vector<int> sets_;
};

}  // namespace

std::vector<WaitMember> poll_members(const sys::Procfs& procfs, const Descriptors& descriptors, pid_t tid,
                                     std::uint64_t array, std::uint64_t count) {
  std::vector<pollfd> fds(std::min<std::uint64_t>(count, max_members));
  Collector collector(procfs, descriptors, tid);
  if (fds.empty() || !sys::Procfs::read_memory(tid, array, fds.data(), fds.size() * sizeof(pollfd))) return {};
  for (const pollfd& entry : fds) {
    if (entry.fd < 0) continue;
    collector.add(entry.fd, (entry.events & (POLLIN | POLLRDNORM | POLLRDHUP | POLLPRI)) != 0,
                  (entry.events & (POLLOUT | POLLWRNORM)) != 0, 0);
  }
  return std::move(collector.members);
}

std::vector<WaitMember> select_members(const sys::Procfs& procfs, const Descriptors& descriptors, pid_t tid,
                                       std::uint64_t count, std::uint64_t read_set, std::uint64_t write_set) {
  // The sets are arrays of 64-bit words on x86-64. The waiter sees the bits of its own copy, which stays as it gave it
  // until the call returns.
  using Words = std::array<std::uint64_t, max_members / 64>;
  const std::size_t bits = std::min<std::uint64_t>(count, max_members);
  const std::size_t bytes = (bits + 63) / 64 * sizeof(std::uint64_t);
  const auto read = [&](std::uint64_t address) {
    Words words{};
    if (address != 0 && bytes != 0 && !sys::Procfs::read_memory(tid, address, words.data(), bytes)) words.fill(0);
    return words;
  };
  const Words in = read(read_set);
  const Words out = read(write_set);
  const auto bit = [](const Words& words, std::size_t i) { return (words.at(i / 64) >> (i % 64) & 1U) != 0; };
  Collector collector(procfs, descriptors, tid);
  for (std::size_t fd = 0; fd < bits; ++fd) collector.add(static_cast<int>(fd), bit(in, fd), bit(out, fd), 0);
  return std::move(collector.members);
}

std::vector<WaitMember> epoll_members(const sys::Procfs& procfs, const Descriptors& descriptors, pid_t tid, int set) {
  Collector collector(procfs, descriptors, tid);
  collector.add_set(set, 0);
  return std::move(collector.members);
}

}  // namespace swapd::observe
