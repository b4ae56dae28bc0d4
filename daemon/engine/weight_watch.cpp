#include "engine/weight_watch.h"

#include <utility>

namespace swapd::daemon {

void WeightWatch::on_event(const Event& event) {
  const auto* enrolled = std::get_if<Enrolled>(&event);
  if (!on_ || taking_ || enrolled == nullptr) return;
  const model::ManagedProcess* process = members_.process(enrolled->tgid);
  if (process != nullptr && !process->kernel) noted_.push_back(enrolled->thread);
}

void WeightWatch::moved(pid_t pid) {
  const model::ManagedProcess* process = members_.process(pid);
  if (!on_ || process == nullptr) return;
  for (const pid_t tid : process->threads)
    if (const model::ManagedThread* thread = members_.thread(tid)) noted_.push_back(thread->id);
}

void WeightWatch::look_at_all() {
  if (!on_) return;
  noted_.clear();
  for (const auto& [tgid, process] : members_.processes())
    if (!process.kernel) moved(tgid);
}

void WeightWatch::ask() {
  if (!noted_.empty()) worker_.ask(WeightsQuestion{std::exchange(noted_, {}), actuator_.group_changes()});
}

void WeightWatch::take(const WeightsAnswer& answer, MemberTracker& tracker, Time now) {
  std::vector<Weight> weights;
  for (const WeightsAnswer::Path& path : answer.paths)
    weights.push_back(
        weight_of(path, [&](const std::string& group) { return actuator_.own_weight(group, answer.changes); }));
  taking_ = true;
  for (const auto& [id, place] : answer.threads)
    if (const model::ManagedThread* thread = members_.thread(id)) tracker.set_weight(*thread, weights[place], now);
  taking_ = false;
}

}  // namespace swapd::daemon
