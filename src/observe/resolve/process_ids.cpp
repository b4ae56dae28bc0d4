#include "observe/resolve/process_ids.h"

#include <unistd.h>

#include <algorithm>

namespace swapd::observe {

ProcessIds::ProcessIds(const sys::Procfs& procfs) : procfs_(procfs) {
  own_namespace_ = procfs_.namespace_inode(::getpid(), "pid").value_or(0);
}

bool ProcessIds::same_namespace(pid_t tid) const {
  return own_namespace_ != 0 && procfs_.namespace_inode(tid, "pid").value_or(0) == own_namespace_;
}

std::optional<pid_t> ProcessIds::ours(pid_t seen_by, pid_t id, std::span<const pid_t> among) const {
  if (same_namespace(seen_by)) return id;
  const auto viewer = procfs_.namespace_pids(seen_by);
  if (!viewer || viewer->empty()) return std::nullopt;
  const std::size_t level = viewer->size() - 1;
  const auto wanted = procfs_.namespace_inode(seen_by, "pid");
  for (const pid_t candidate : among) {
    const auto ids = procfs_.namespace_pids(candidate);
    if (!ids || ids->size() <= level || (*ids)[level] != id) continue;
    // At the viewer's own level another namespace may use the same number; below it the level is all that can be
    // checked.
    if (ids->size() == level + 1 && wanted && procfs_.namespace_inode(candidate, "pid").value_or(*wanted) != *wanted)
      continue;
    return candidate;
  }
  return std::nullopt;
}

}  // namespace swapd::observe
