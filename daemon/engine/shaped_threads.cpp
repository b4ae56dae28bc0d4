#include "engine/shaped_threads.h"

#include <utility>

namespace swapd::daemon {

std::vector<Woken> ShapedThreads::newly_held(Time now) {
  std::vector<Woken> out;
  std::unordered_map<pid_t, Time> held;
  for (const auto& [tid, since] : shaper_.would_run()) {
    held[tid] = since;
    const model::ManagedThread* member = members_.thread(tid);
    const auto before = held_before_.find(tid);
    if (member != nullptr && (before == held_before_.end() || before->second != since))
      out.push_back({.time = now, .thread = member->id, .unrelated = true});
  }
  held_before_ = std::move(held);
  return out;
}

void ShapedThreads::on_outcome(const actuate::Outcome& outcome) {
  using What = actuate::Outcome::What;
  if (outcome.what == What::begun || outcome.what == What::changed || outcome.what == What::ineffective)
    shaper_.favour(outcome.boost.thread.tid, !outcome.boost.stands);
  if (outcome.what == What::ended) shaper_.favour(outcome.boost.thread.tid, false);
}

}  // namespace swapd::daemon
