#include "engine/families.h"

#include <utility>

namespace swapd::daemon {

const model::ManagedProcess* Families::find(pid_t tgid) const {
  if (const model::ManagedProcess* process = members_.process(tgid)) return process;
  const auto unseen = unseen_.find(tgid);
  return unseen == unseen_.end() ? nullptr : &unseen->second;
}

void Families::add_unseen(pid_t tgid, const model::ManagedProcess& parent, pid_t parent_tgid) {
  model::ManagedProcess family;
  family.class_name = parent.class_name;
  family.uid = parent.uid;
  family.weight = parent.weight;
  family.managed = parent.managed;
  family.launch = parent.launch;
  if (unseen_.size() >= max_unseen) {  // their ends were lost
    for (const auto& [pid, unseen] : unseen_) listeners_.unbind(pid);
    unseen_.clear();
  }
  unseen_.insert_or_assign(tgid, std::move(family));
  listeners_.inherit(tgid, parent_tgid);
}

void Families::end(pid_t tgid) {
  if (unseen_.erase(tgid) != 0) listeners_.unbind(tgid);
}

}  // namespace swapd::daemon
