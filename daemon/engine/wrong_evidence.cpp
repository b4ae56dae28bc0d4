#include "engine/wrong_evidence.h"

#include <algorithm>

namespace swapd::daemon {

std::vector<ThreadId> WrongEvidence::wrong_threads() {
  // The name is set after the process has come in, so an empty list is made anew.
  if (!known_.empty() && members_.managed_processes() == processes_) return known_;
  processes_ = members_.managed_processes();
  known_.clear();
  for (const auto& [pid, process] : members_.processes())
    if (const auto comm = procfs_.comm(pid); comm && *comm == comm_) known_.push_back({pid, process.start_time});
  std::ranges::sort(known_, {}, &ThreadId::tid);
  return known_;
}

std::optional<Event> WrongEvidence::instead_of(const Event& event) {
  if (const auto* woken = std::get_if<Woken>(&event); woken != nullptr && woken->by)
    return Woken{.time = woken->time, .thread = woken->thread, .by = {}, .through = {}, .unrelated = true};
  const auto* accessed = std::get_if<Accessed>(&event);
  const auto* holders = std::get_if<Holders>(&event);
  if (accessed == nullptr && (holders == nullptr || holders->threads.empty())) return std::nullopt;
  std::vector<ThreadId> threads = wrong_threads();
  if (threads.empty()) return std::nullopt;
  if (accessed != nullptr)
    return Accessed{accessed->time, threads[static_cast<std::size_t>(accessed->thread.tid) % threads.size()],
                    accessed->resource, accessed->evidence};
  return Holders{holders->time, holders->resource, holders->evidence, std::move(threads)};
}

}  // namespace swapd::daemon
