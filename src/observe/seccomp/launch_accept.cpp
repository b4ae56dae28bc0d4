#include "observe/seccomp/launch_accept.h"

#include <algorithm>

#include "base/time.h"
#include "sys/process/futex.h"
#include "sys/process/pidfd.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::observe {
namespace {

// A futex and a pidfd cannot be waited for together, so the launcher's death is looked for this often. The listener
// itself wakes at once.
constexpr std::chrono::milliseconds slice{20};

Result<Fd> take_listener(int launcher_pidfd, std::int32_t number) {
  auto listener = sys::take_fd(launcher_pidfd, number);
  if (!listener) return std::move(listener).error().in("taking the launcher's listener");
  if (!sys::is_listener(listener->get())) return Error(EBADF, "what the launcher gave is no seccomp listener");
  return listener;
}

}  // namespace

Result<Fd> accept_launch(int launcher_pidfd, sys::launch::Shared* shared, std::chrono::milliseconds timeout,
                         const std::stop_token& stop) {
  const Time deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const std::int32_t number = shared->listener.load();
    if (number >= 0) return take_listener(launcher_pidfd, number);
    if (number != sys::launch::not_yet) return Error(ECANCELED, "the launcher could not install its filter");
    if (sys::has_exited(launcher_pidfd)) return Error(ESRCH, "the launcher has ended");
    if (stop.stop_requested()) return Error(ECANCELED, "stopping");
    const Time now = std::chrono::steady_clock::now();
    if (now >= deadline) return Error(ETIMEDOUT, "waiting for the launcher's listener");
    sys::futex_wait(shared->listener, number, std::min<Time>(deadline, now + slice));
  }
}

bool complete_launch(sys::launch::Shared* shared, bool go_on) {
  std::int32_t expected = sys::launch::no_answer;
  const bool told = shared->answer.compare_exchange_strong(expected, go_on ? sys::launch::go_on : sys::launch::refused);
  sys::futex_wake(shared->answer);
  return told;
}

}  // namespace swapd::observe
