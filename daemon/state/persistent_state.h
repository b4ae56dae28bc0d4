// The state directory that one swapd leaves to the next: the directory, its lock, and the files. Read by
// restore_members.h and confidence_file.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"
#include "model/managed_set.h"
#include "model/saved_confidence.h"

namespace swapd::daemon {

// Makes it where it is not there, for us alone. EPERM: others may write to what is there, and could have swapd believe
// them.
[[nodiscard]] Status check_state_dir(const std::string& state_dir);
// Has the state directory for itself for as long as the descriptor is open. Waits for another swapd that is just
// ending; EBUSY: one that does not, within the time.
[[nodiscard]] Result<Fd> lock_state(const std::string& state_dir, Duration within = std::chrono::seconds(5));

// Replaces the file as a whole. `boot_id`: of this boot; its pids mean nothing in another.
[[nodiscard]] Status write_members(const std::string& state_dir, const std::string& boot_id,
                                   const std::vector<model::Membership>& members);
struct LeftMembers {
  std::vector<model::Membership> members;
  std::uint64_t written = 0;  // in ticks since boot, as start times
};
// Empty where there is none, or one of another boot. EBADMSG: it is damaged, or of another version.
[[nodiscard]] Result<LeftMembers> read_members(const std::string& state_dir, const std::string& boot_id);

[[nodiscard]] Status write_lessons(const std::string& state_dir, const std::string& boot_id,
                                   const std::vector<model::SavedConfidence>& lessons);
// Empty where there is none, or one of another boot. EBADMSG: it is damaged, or of another version.
[[nodiscard]] Result<std::vector<model::SavedConfidence>> read_lessons(const std::string& state_dir,
                                                                       const std::string& boot_id);
inline constexpr std::size_t max_lessons = 20'000;

[[nodiscard]] std::string members_file(const std::string& state_dir);
[[nodiscard]] std::string lessons_file(const std::string& state_dir);

}  // namespace swapd::daemon
