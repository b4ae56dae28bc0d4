// Whose child a process is, for what its own children are to be: managed or not, in which class, under which filter.
// Also of processes that had ended before swapd looked, and may have started others: where their events are told
// without start times, that is all that is known of them. Engine thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <unordered_map>

#include "engine/listener_table.h"
#include "model/managed_set.h"

namespace swapd::daemon {

class Families {
 public:
  static constexpr std::size_t max_unseen = 1024;

  Families(const model::ManagedSet& members, ListenerTable& listeners) : members_(members), listeners_(listeners) {}

  // Null: it is neither managed nor the child of a managed process. Valid until one of the two changes.
  [[nodiscard]] const model::ManagedProcess* find(pid_t tgid) const;
  // The process has ended before swapd looked; it was as its parent is. `parent` is what find(parent_tgid) gave.
  void add_unseen(pid_t tgid, const model::ManagedProcess& parent, pid_t parent_tgid);
  // The end of a process that is not managed has been told.
  void end(pid_t tgid);

 private:
  const model::ManagedSet& members_;
  ListenerTable& listeners_;
  std::unordered_map<pid_t, model::ManagedProcess> unseen_;  // by tgid
};

}  // namespace swapd::daemon
