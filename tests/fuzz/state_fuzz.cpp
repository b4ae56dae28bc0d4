// Any bytes in the state directory: as the list of members, as confidences, and as the journal. Each is read, or said
// to be damaged in one line that names it; nothing of it is more than it may be.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "actuate/journal.h"
#include "state/persistent_state.h"

namespace {

// In memory, and made once.
const std::string& state_dir() {
  static const std::string& dir = *new std::string([] {  // never destroyed: it is needed at the exit
    std::string pattern = "/dev/shm/swapd-fuzz-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    std::atexit([] {
      for (const char* name : {"/members", "/confidences", "/journal", "/journal.bad"})
        ::unlink((state_dir() + name).c_str());
      ::rmdir(state_dir().c_str());
    });
    return pattern;
  }());
  return dir;
}

void write(const std::string& name, const std::uint8_t* data, std::size_t size) {
  const int fd = ::open((state_dir() + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  ::close(fd);
}

template <typename T>
void one_line(const swapd::Result<T>& read) {
  if (!read && (read.error().context().empty() || read.error().context().find('\n') != std::string::npos)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const char* boot = "boot";
  switch (data[0] % 3) {
    case 0:
      write("/members", data + 1, size - 1);
      one_line(swapd::daemon::read_members(state_dir(), boot));
      break;
    case 1:
      write("/confidences", data + 1, size - 1);
      one_line(swapd::daemon::read_lessons(state_dir(), boot));
      break;
    default: {
      write("/journal", data + 1, size - 1);
      const auto journal = swapd::actuate::Journal::open(state_dir(), boot);
      if (journal && journal->left().size() > swapd::actuate::Journal::capacity) std::abort();
    }
  }
  return 0;
}
