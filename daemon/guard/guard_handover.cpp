#include "guard/guard_handover.h"

#include <cerrno>
#include <cstdint>

#include "guard/guard_messages.h"

namespace swapd::daemon {

void GuardHandover::open_door(pid_t guard) {
  if (!door_.is_open() && !state_dir_.empty()) door_.open(guard_path(state_dir_, guard));
}

void GuardHandover::begin(Fd caller, std::vector<int> listeners) {
  caller_ = std::move(caller);
  asked_ = std::move(listeners);
}

int GuardHandover::serve(const HeldListeners& held) {
  const auto received = receive_message(caller_.get());
  if (!received) {
    if (received.error().code() != EAGAIN && received.error().code() != EINTR) caller_.reset();
    return -1;
  }
  const std::uint32_t which = received->message.sequence;
  if (received->message.kind == GuardMessage::Kind::done && which < asked_.size()) return asked_.at(which);
  if (received->message.kind != GuardMessage::Kind::take) return -1;
  GuardMessage answer;
  answer.sequence = which;
  answer.kind = which < asked_.size() ? GuardMessage::Kind::give : GuardMessage::Kind::end;
  int fd = -1;
  if (answer.kind == GuardMessage::Kind::give) {
    if (const HeldListener* listener = held.find(asked_.at(which)); listener == nullptr) {
      answer.error = ENOENT;  // its programs have ended meanwhile
    } else {
      fd = asked_.at(which);
      answer.pid = listener->launch;
      answer.last_id = listener->last_known();
      given_ = true;
    }
  }
  if (!send_message(caller_.get(), answer, fd)) caller_.reset();
  return -1;
}

}  // namespace swapd::daemon
