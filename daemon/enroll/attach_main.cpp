// swapd-attach: installs a filter in a running process and hands the listener to swapd, while the process stands still
// (attach_messages.h). Started by swapd alone. It is a process of its own because it must not be ended in the middle,
// whatever happens to swapd, and because ptrace(2) lets go of everything when it ends.
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include "enroll/attach_messages.h"
#include "guard/guard_messages.h"
#include "guard/guard_process.h"
#include "guard/guard_setup.h"
#include "sys/procfs/procfs.h"
#include "sys/seccomp/attach_filter.h"

namespace swapd::daemon {
namespace {

Result<sys::AttachedFilter> install(const AttachRequest& request) {
  const auto id = sys::Procfs().thread_id(request.pid);
  if (!id || id->start_time != request.start_time)
    return Error(ESRCH, "process " + std::to_string(request.pid) + " has ended");
  return sys::AttachedFilter::install(request.pid, std::span(request.program).first(request.instructions),
                                      {.flags = static_cast<unsigned long>(request.flags),
                                       .allow_no_new_privs = request.allow_no_new_privs,
                                       .within = Duration(request.within)});
}

void answer(const Error& error) {
  AttachAnswer text{.error = error.code()};
  const std::string line = error.context();
  line.copy(text.text.data(), text.text.size() - 1);
  (void)!::send(attach_fd::socket, &text, sizeof text, MSG_NOSIGNAL);
}

// True once swapd says that a receiver runs.
bool handed_over(int listener) {
  const AttachAnswer good;
  if (!send_with_fd(attach_fd::socket, &good, sizeof good, listener)) return false;
  const auto said = await_message(attach_fd::socket, max_still);
  return said && said->message.kind == GuardMessage::Kind::done;
}

// No other process has the listener, or the one that has it may never get to it: a guard of this one, until swapd says
// so after all, or the next one finds it.
[[noreturn]] void guard(Fd listener, Fd swapd, const AttachRequest& request) {
  constexpr std::size_t size = sizeof(ListenerSlot);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) ::_exit(1);
  run_guard(Fd(attach_fd::socket), std::move(swapd),
            {.slots = {static_cast<ListenerSlot*>(memory), 1},
             .stale = Duration(request.stale),
             .state_dir = request.state_dir.data(),
             .first = std::move(listener),
             .launch = request.pid});
}

int run() {
  stand_alone("swapd-attach");
  AttachRequest request;
  const Status readable = await_readable(attach_fd::socket, max_silent);
  auto received = readable ? receive_with_fd(attach_fd::socket, &request, sizeof request)
                           : Result<ReceivedWithFd>(readable.error());
  if (!received) return 1;  // the swapd that began has gone
  if (received->size != sizeof request || request.version != AttachRequest::current_version ||
      request.instructions > request.program.size() || request.stale <= 0 || request.state_dir.back() != '\0' ||
      !received->fd) {
    answer(Error(EPROTO, "swapd-attach is of another version than swapd"));
    return 1;
  }
  // systemd may have been slow to start us.
  pollfd other_end{.fd = attach_fd::socket, .events = POLLRDHUP, .revents = 0};
  if (::poll(&other_end, 1, 0) != 0) return 1;
  auto attached = install(request);
  if (!attached) {
    answer(attached.error());
    return 1;
  }
  const bool others_receive = handed_over(attached->listener());
  Fd listener = attached->resume();
  if (others_receive) return 0;
  guard(std::move(listener), std::move(received->fd), request);
}

}  // namespace
}  // namespace swapd::daemon

int main(int argc, char**) {
  struct stat socket {};
  if (argc != 1 || ::fstat(swapd::daemon::attach_fd::socket, &socket) != 0 || !S_ISSOCK(socket.st_mode)) {
    (void)std::fputs("swapd-attach: it is started by swapd, and by nobody else\n", stderr);
    return 2;
  }
  return swapd::daemon::run();
}
