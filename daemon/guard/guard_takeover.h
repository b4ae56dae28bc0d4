// What an earlier swapd's guard still holds, taken over (guard.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::daemon {

struct OrphanListener {
  Fd listener;
  std::uint32_t index = 0;    // of those of its guard
  pid_t launch = 0;           // whose launch made it; that process may have ended
  std::uint64_t last_id = 0;  // the last call that the earlier swapd answered
  bool io = true;             // its filter may trap I/O calls
};

class OrphanGuard {
 public:
  // Those that are alone. What others of that name stand in the directory is removed where nobody answers there.
  [[nodiscard]] static std::vector<OrphanGuard> find(const std::string& state_dir);

  // Duplicates of all that it holds. It goes on answering each until done(), or for ever where that never comes.
  [[nodiscard]] Result<std::vector<OrphanListener>> take();
  // That one has another holder, and somebody who answers. With the last it ends.
  [[nodiscard]] Status done(std::uint32_t index);

 private:
  explicit OrphanGuard(Fd socket) : socket_(std::move(socket)) {}
  Fd socket_;
};

}  // namespace swapd::daemon
