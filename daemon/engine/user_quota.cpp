#include "engine/user_quota.h"

#include <string>

namespace swapd::daemon {

bool UserQuota::has_room(std::uint32_t uid, bool process) const {
  if (uid == 0) return true;
  const model::ManagedSet::Held held = members_.held_by(uid);
  return (limits_.threads == 0 || held.threads < limits_.threads) &&
         (!process || limits_.processes == 0 || held.processes < limits_.processes);
}

Status UserQuota::room_for(std::uint32_t uid, pid_t process) const {
  if (const model::ManagedProcess* member = members_.process(process); member != nullptr && member->managed)
    return Done{};
  if (has_room(uid, true)) return Done{};
  const bool threads = !has_room(uid, false);
  const std::string what = threads ? "threads" : "processes";
  return Error(EDQUOT, "user " + std::to_string(uid) + " has " +
                           std::to_string(threads ? limits_.threads : limits_.processes) + " managed " + what +
                           ", as many as [quota] " + what + " in the policy allows");
}

}  // namespace swapd::daemon
