#include "guard/pending_notifications.h"

#include <poll.h>

#include "base/ignore_gone.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {

bool something_received(int listener) {
  pollfd entry{listener, POLLIN | POLLOUT, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & POLLOUT) != 0;
}

void answer_between(int listener, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t id = from; id <= to && something_received(listener); ++id)
    ignore_gone(sys::answer_continue(listener, id));
}

void answer_left(int listener, const ListenerSlot& slot, std::uint64_t last) {
  if (const std::uint64_t open = slot.open_id.load(std::memory_order_acquire); open != 0)
    ignore_gone(sys::answer_continue(listener, open));
  if (last != 0) answer_between(listener, last + 1, last + max_unknown);
}

}  // namespace swapd::daemon
