// The listener's side of seccomp.h: nothing but system calls, because the guard's program is built from it.
#include <poll.h>
#include <sys/ioctl.h>

#include <atomic>
#include <cerrno>

#include "sys/seccomp/seccomp.h"

// Newer than the headers that some distributions ship; the kernel is asked before it is used.
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)  // 6.6
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

namespace swapd::sys {

namespace {
std::atomic<int> sync_refused{0};
}  // namespace

Status set_sync_wake_up(int listener) {
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP) == 0) return Done{};
  sync_refused.store(errno);
  return errno_error("setting SYNC_WAKE_UP on the listener");
}

int sync_wake_up_refused() { return sync_refused.load(); }

Result<Notification> receive(int listener) {
  // The size of the structure is part of the ioctl's number, so a kernel that grows it keeps this one (no
  // GET_NOTIF_SIZES). It must come in zeroed.
  seccomp_notif raw{};
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &raw) != 0) return errno_error("receiving");
  Notification out;
  out.id = raw.id;
  out.tid = static_cast<pid_t>(raw.pid);
  out.nr = raw.data.nr;
  for (std::size_t i = 0; i < out.args.size(); ++i) out.args[i] = raw.data.args[i];
  return out;
}

bool hung_up(int listener) {
  pollfd entry{listener, POLLIN, 0};
  // POLLERR alone only says that a signal came.
  return ::poll(&entry, 1, 0) == 1 && (entry.revents & (POLLIN | POLLHUP)) == POLLHUP;
}

Status await_notification(int listener) {
  pollfd entry{listener, POLLIN, 0};
  if (::poll(&entry, 1, -1) < 0) return errno_error("waiting for a notification");
  return Done{};
}

Status answer_continue(int listener, std::uint64_t id) {
  seccomp_notif_resp answer{};
  answer.id = id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  // The kernel takes a lock first and may be interrupted there; the target must not pay for a signal of ours.
  while (::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0)
    if (errno != EINTR) return errno_error("answering");
  return Done{};
}

bool still_valid(int listener, std::uint64_t id) { return ::ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0; }

}  // namespace swapd::sys
