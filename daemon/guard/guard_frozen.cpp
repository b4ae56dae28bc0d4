#include "guard/guard_frozen.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace swapd::daemon {
namespace {

// True: it goes on, or is not there any more.
bool thaw(const FrozenGroup& group) {
  const Fd file(::open(group.file.data(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return errno == ENOENT;
  return ::write(file.get(), group.thaw.data(), ::strnlen(group.thaw.data(), group.thaw.size())) > 0 ||
         errno == ENODEV;  // removed since it was opened
}

}  // namespace

void GuardFrozen::thaw_overdue(Time before) {
  for (FrozenGroup& group : groups_) {
    const std::int64_t until = group.until.load(std::memory_order_acquire);
    if (until == 0 || Time(Duration(until)) >= before || group.file.front() == '\0') continue;
    // Also where swapd has just vouched for it: it must see that it does not stand still.
    if (thaw(group)) group.until.store(0, std::memory_order_release);  // else it is tried again
  }
}

void GuardFrozen::thaw_all() {
  left_ = false;
  for (FrozenGroup& group : groups_) {
    if (group.file.front() == '\0') continue;
    if (thaw(group))
      group.file.front() = '\0';
    else
      left_ = true;
  }
}

}  // namespace swapd::daemon
