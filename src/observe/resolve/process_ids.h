// Process ids as a target writes them, in its own pid namespace, and as swapd sees them.
#pragma once

#include <optional>
#include <span>

#include "sys/procfs/procfs.h"

namespace swapd::observe {

class ProcessIds {
 public:
  explicit ProcessIds(const sys::Procfs& procfs);
  // [hot] Whether the thread's ids are ours.
  [[nodiscard]] bool same_namespace(pid_t tid) const;
  // The id that `id`, in the namespace of thread `seen_by`, has here. Looked for among `among`; empty: not found.
  [[nodiscard]] std::optional<pid_t> ours(pid_t seen_by, pid_t id, std::span<const pid_t> among) const;

 private:
  const sys::Procfs& procfs_;
  std::uint64_t own_namespace_ = 0;
};

}  // namespace swapd::observe
