// Any bytes on the sockets between swapd, its guard and swapd-attach: a message of the right form, or none.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "enroll/attach_messages.h"
#include "guard/guard_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace swapd::daemon;
  static int pair[2] = {-1, -1};
  if (pair[0] < 0 && ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
  if (size == 0 || size > 65536) return 0;
  // With a descriptor too, now and then.
  const int fd = data[0] % 4 == 0 ? pair[0] : -1;
  if (!send_with_fd(pair[0], data, size, fd)) std::abort();
  auto message = receive_message(pair[1]);
  if (message && message->message.version != GuardMessage::current_version) std::abort();
  if (message && size != sizeof(GuardMessage) && size < sizeof(GuardMessage)) std::abort();
  if (message && fd >= 0 && !message->fd) std::abort();
  AttachAnswer answer;
  if (!send_with_fd(pair[0], data, size, -1)) std::abort();
  const auto received = receive_with_fd(pair[1], &answer, sizeof answer);
  if (!received || received->size != std::min(size, sizeof answer)) std::abort();
  return 0;
}
