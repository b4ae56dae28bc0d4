// swapd-guard: guard.h says what it is for. Started by swapd alone, with what guard_process.h says at fixed
// descriptors; its arguments are the time after which a swapd that does not answer is hung, in ns, the state directory,
// and of GuardTask `restart_count` and `respawn`. Or by systemd, for swapd: without arguments, and with the connection
// where a child has its socket; then all that comes as GuardStart.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "guard/guard.h"
#include "guard/guard_messages.h"
#include "guard/guard_process.h"
#include "guard/guard_socket.h"
#include "sys/process/pidfd.h"

namespace swapd::daemon {
namespace {

// How long swapd may be silent before it says what there is to do.
constexpr Duration max_silent = std::chrono::seconds(10);

// Null: this is no GuardMemory.
GuardMemory* mapped(int memory) {
  constexpr std::size_t size = sizeof(GuardMemory);
  struct stat st {};
  if (::fstat(memory, &st) != 0 || static_cast<std::size_t>(st.st_size) != size) return nullptr;
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  return at == MAP_FAILED ? nullptr : static_cast<GuardMemory*>(at);
}

int stray() {
  (void)std::fputs("swapd-guard: it is started by swapd, and by nobody else\n", stderr);
  return 2;
}

int run_as_child(int argc, char** argv) {
  Duration::rep stale = 0;
  const bool said =
      argc >= 4 && std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), stale).ec == std::errc() && stale > 0;
  GuardMemory* memory = said ? mapped(guard_fd::memory) : nullptr;
  if (memory == nullptr) return stray();
  run_guard(Fd(guard_fd::socket), Fd(guard_fd::swapd),
            {.slots = memory->slots,
             .delayed = memory->delayed,
             .frozen = memory->frozen,
             .stale = Duration(stale),
             .state_dir = argv[2],
             .respawn = argv + 4,
             .restart_count = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10))});
}

int run_as_unit() {
  struct stat st {};
  if (::fstat(guard_fd::socket, &st) != 0 || !S_ISSOCK(st.st_mode)) return stray();
  Fd socket(guard_fd::socket);
  GuardStart start;
  std::array<Fd, 2> given;  // swapd's pidfd, and the memory
  for (Fd& each : given) {
    if (!await_readable(socket.get(), max_silent)) return 1;  // whoever began has gone
    auto received = receive_with_fd(socket.get(), &start, sizeof start);
    if (!received) return 1;
    if (received->size != sizeof start || start.version != GuardMessage::current_version || start.stale <= 0 ||
        start.state_dir.back() != '\0')
      return 1;
    each = std::move(received->fd);
  }
  GuardMemory* memory = mapped(given[1].get());
  const auto self = sys::open_pidfd(::getpid());
  if (memory == nullptr || !given[0] || !self) return 1;
  GuardMessage here;
  here.kind = GuardMessage::Kind::answer;
  // Its sandbox may have another state directory than swapd's: then a child of swapd's is the better guard.
  if (start.state_dir.front() != '\0') {
    GuardDoor door;
    door.open(guard_path(start.state_dir.data(), ::getpid()));
    if (!door.is_open()) here.error = door.error();
  }
  if (!send_message(socket.get(), here, self->get())) return 1;
  if (here.error != 0) return 1;
  given[1].reset();
  run_guard(std::move(socket), std::move(given[0]),
            {.slots = memory->slots,
             .delayed = memory->delayed,
             .frozen = memory->frozen,
             .stale = Duration(start.stale),
             .state_dir = start.state_dir.data()});
}

}  // namespace
}  // namespace swapd::daemon

int main(int argc, char** argv) {
  return argc == 1 ? swapd::daemon::run_as_unit() : swapd::daemon::run_as_child(argc, argv);
}
