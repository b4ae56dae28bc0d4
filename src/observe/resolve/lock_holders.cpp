#include "observe/resolve/lock_holders.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>

#include "observe/resolve/lock_calls.h"

namespace swapd::observe {
namespace {

constexpr Duration locks_age = std::chrono::seconds(1);

bool overlaps(const sys::LockLine& line, std::uint64_t first, std::uint64_t last) {
  return line.first <= last && line.last >= first;
}

}  // namespace

void LockHolders::read_request(pid_t tid, pid_t tgid, const Resource& record_lock) {
  request_ = {.tgid = tgid};  // one that tries F_SETLK and sleeps, say, asks for any
  const auto call = procfs_.syscall(tid);
  if (!call || !call->in_call || call->nr != SYS_fcntl) return;
  request_.posix = call->args[1] == F_SETLKW;
  const auto range = requested_range(procfs_, tid, static_cast<int>(call->args[0]), call->args[2]);
  if (range && range->first == record_lock.ids[2] && range->last == record_lock.ids[3]) request_.write = range->write;
}

bool LockHolders::holds(const Resource& lock, pid_t pid, Duration max_age) {
  const auto& ids = lock.ids;
  for (const auto& entry : fds_.find(pid, max_age, [&](const auto& i) { return i.dev == ids[0] && i.ino == ids[1]; })) {
    const auto info = procfs_.fdinfo(pid, entry.fd);
    if (!info) continue;
    for (const sys::LockLine& line : info->locks) {
      if (lock.kind == ResourceKind::flock) {
        if (line.type == sys::LockLine::Type::flock && line.write == (ids[2] == 1)) return true;
        continue;
      }
      const bool posix = line.type == sys::LockLine::Type::posix;
      if (!posix && line.type != sys::LockLine::Type::ofd) continue;
      if (posix && request_.posix && pid == request_.tgid) continue;  // one's own POSIX locks never conflict
      if (posix && line.pid != pid) continue;                         // a child has the descriptor, and not the lock
      if ((line.write || request_.write) && overlaps(line, ids[2], ids[3])) return true;
    }
  }
  return false;
}

std::vector<pid_t> LockHolders::named_owners(const Resource& record_lock) {
  const auto& ids = record_lock.ids;
  if (const Time now = clock_.now(); locks_read_ == Time{} || now - locks_read_ >= locks_age) {
    locks_ = procfs_.locks();
    locks_read_ = now;
  }
  std::vector<pid_t> out;
  for (const sys::LockLine& line : locks_) {
    if (line.type != sys::LockLine::Type::posix || line.waiting || line.dev != ids[0] || line.ino != ids[1] ||
        !overlaps(line, ids[2], ids[3]))
      continue;
    if (!line.write && !request_.write) continue;
    if (request_.posix && line.pid == request_.tgid) continue;
    if (line.pid > 0 && std::ranges::find(out, line.pid) == out.end()) out.push_back(line.pid);
  }
  return out;
}

}  // namespace swapd::observe
