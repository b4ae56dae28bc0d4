// swapd-guard: guard.h says what it is for. Started by swapd alone, with what guard_process.h says at fixed
// descriptors; its arguments are the time after which a swapd that does not answer is hung, in ns, the state directory,
// and of GuardTask `deaths` and `respawn`.
#include <sys/mman.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "guard.h"
#include "guard_process.h"

int main(int argc, char** argv) {
  using namespace swapd;
  using namespace swapd::daemon;
  constexpr std::size_t size = sizeof(GuardMemory);
  Duration::rep stale = 0;
  struct stat memory {};
  const bool started_by_swapd =
      argc >= 4 && std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), stale).ec == std::errc() && stale > 0 &&
      ::fstat(guard_fd::memory, &memory) == 0 && static_cast<std::size_t>(memory.st_size) == size;
  void* mapped =
      started_by_swapd ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, guard_fd::memory, 0) : MAP_FAILED;
  if (mapped == MAP_FAILED) {
    (void)std::fputs("swapd-guard: it is started by swapd, and by nobody else\n", stderr);
    return 2;
  }
  auto* shared = static_cast<GuardMemory*>(mapped);
  run_guard(Fd(guard_fd::socket), Fd(guard_fd::swapd),
            {.slots = shared->slots,
             .delayed = shared->delayed,
             .stale = Duration(stale),
             .state_dir = argv[2],
             .respawn = argv + 4,
             .deaths = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10))});
}
