// [quota] processes and threads: how many managed processes and threads one user may have. Root has no limit. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/result.h"
#include "model/managed_set.h"

namespace swapd::daemon {

class UserQuota {
 public:
  struct Limits {  // 0: no limit
    std::size_t processes = 0;
    std::size_t threads = 0;
  };
  UserQuota(const model::ManagedSet& members, Limits limits) : members_(members), limits_(limits) {}

  // Whether the user may have one more managed thread, and with it a process.
  [[nodiscard]] bool has_room(std::uint32_t uid, bool process) const;
  // Whether the user's process may be enrolled; one that is managed already may. EDQUOT: with what to tell the user.
  [[nodiscard]] Status room_for(std::uint32_t uid, pid_t process) const;

 private:
  const model::ManagedSet& members_;
  Limits limits_;
};

}  // namespace swapd::daemon
