#include "guard.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <utility>

#include "guard_messages.h"
#include "guard_process.h"
#include "sys/pidfd.h"

namespace swapd::daemon {
namespace {

constexpr std::chrono::seconds answer_within{1};

// The answer to `sequence`; older ones belong to calls that gave up waiting.
Status await_answer(int socket, std::uint32_t sequence) {
  for (;;) {
    const auto answer = await_message(socket, answer_within);
    if (!answer) return answer.error();
    if (answer->message.kind != GuardMessage::Kind::answer || answer->message.sequence != sequence) continue;
    if (answer->message.error != 0) return Error(answer->message.error, "the guard could not take the listener");
    return Done{};
  }
}

}  // namespace

Guard::Guard(pid_t pid, Fd socket, Slots slots)
    : pid_(pid), socket_(std::move(socket)), slots_(std::move(slots)), mutex_(std::make_unique<std::mutex>()) {
  free_.reserve(most_listeners);
  for (std::size_t i = most_listeners; i-- > 0;) free_.push_back(static_cast<std::uint16_t>(i));
}

void Guard::Unmap::operator()(observe::ListenerSlot* slots) const {
  ::munmap(slots, most_listeners * sizeof(observe::ListenerSlot));
}

Result<Guard> Guard::start(Duration stale, const std::string& state_dir) {
  void* memory = ::mmap(nullptr, most_listeners * sizeof(observe::ListenerSlot), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno_error("starting the guard");
  Slots slots(new (memory) observe::ListenerSlot[most_listeners]{});
  auto self = sys::open_pidfd(::getpid());
  if (!self) return std::move(self).error().in("starting the guard");
  int pair[2] = {-1, -1};
  // SEQPACKET: messages keep their bounds, and the end of one side shows on the other.
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return errno_error("starting the guard");
  Fd ours(pair[0]);
  Fd theirs(pair[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("starting the guard");
  if (pid == 0) {
    ours.reset();
    run_guard(std::move(theirs), std::move(self).value(),
              {.slots = {slots.get(), most_listeners}, .stale = stale, .state_dir = state_dir});
  }
  return Guard(pid, std::move(ours), std::move(slots));
}

Result<observe::ListenerSlot*> Guard::hold(int listener, pid_t launch) {
  const std::lock_guard lock(*mutex_);
  if (free_.empty()) return Error(EMFILE, "the guard holds " + std::to_string(most_listeners) + " listeners");
  observe::ListenerSlot* slot = &slots_[free_.back()];
  slot->open_id = 0;
  slot->last_id = 0;
  GuardMessage message;
  message.slot = free_.back();
  message.pid = launch;
  message.sequence = ++sequence_;
  if (Status sent = send_message(socket_.get(), message, listener); !sent) return std::move(sent).error();
  if (Status held = await_answer(socket_.get(), message.sequence); !held) return std::move(held).error();
  free_.pop_back();
  return slot;
}

void Guard::let_go(const observe::ListenerSlot* slot) {
  const std::lock_guard lock(*mutex_);
  free_.push_back(static_cast<std::uint16_t>(slot - slots_.get()));
}

}  // namespace swapd::daemon
