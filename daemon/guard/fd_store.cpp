#include "guard/fd_store.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/ignore_gone.h"
#include "guard/guard.h"
#include "guard/pending_notifications.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {
namespace {

constexpr std::string_view listener_prefix = "listener-";
constexpr std::string_view slots_name = "slots";
constexpr std::size_t guard_memory_size = sizeof(GuardMemory);

bool is_memory_of_slots(int fd) {
  struct stat found {};
  return ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_size == static_cast<off_t>(guard_memory_size);
}

pid_t launch_of(std::string_view name) {
  pid_t pid = 0;
  name.remove_prefix(listener_prefix.size());
  std::from_chars(name.data(), name.data() + name.size(), pid);
  return pid;
}

void send(const std::string& message, int fd) { (void)sd_pid_notify_with_fds(0, 0, message.c_str(), &fd, 1); }

}  // namespace

FdStore::FdStore(FdStore&&) noexcept = default;

FdStore FdStore::open() {
  FdStore store;
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);
  for (int i = 0; i < count; ++i) {
    Fd fd(SD_LISTEN_FDS_START + i);
    const std::string_view name = names != nullptr ? names[i] : "";
    if (name.starts_with(listener_prefix) && sys::is_listener(fd.get()))
      store.left_.push_back({.listener = std::move(fd), .launch = launch_of(name)});
    else if (name == slots_name && is_memory_of_slots(fd.get()))
      store.slots_.push_back(std::move(fd));
  }
  for (int i = 0; names != nullptr && names[i] != nullptr; ++i) ::free(names[i]);
  ::free(names);
  return store;
}

// Whose slot was whose is not known, and need not be: ids begin at random in 64 bits, so that another listener's means
// nothing here (ENOENT).
void FdStore::answer_left(int listener) const {
  for (const Fd& memory : slots_) {
    void* mapped = ::mmap(nullptr, guard_memory_size, PROT_READ, MAP_SHARED, memory.get(), 0);
    if (mapped == MAP_FAILED) continue;
    const auto* shared = static_cast<const GuardMemory*>(mapped);
    for (const DelayedCall& call : shared->delayed)  // whoever delays them now does not know of them
      if (const std::uint64_t id = call.id.load(); id != 0) ignore_gone(sys::answer_continue(listener, id));
    for (const ListenerSlot& slot : shared->slots) {
      if (!something_received(listener)) break;
      daemon::answer_left(listener, slot, std::max(slot.open_id.load(), slot.last_id.load()));
    }
    ::munmap(mapped, guard_memory_size);
  }
}

void FdStore::keep(int listener, pid_t launch) const {
  send("FDSTORE=1\nFDNAME=" + std::string(listener_prefix) + std::to_string(launch), listener);
}

void FdStore::keep_slots(int memory) const {
  (void)sd_notify(0, ("FDSTOREREMOVE=1\nFDNAME=" + std::string(slots_name)).c_str());
  send("FDSTORE=1\nFDNAME=" + std::string(slots_name), memory);
}

}  // namespace swapd::daemon
