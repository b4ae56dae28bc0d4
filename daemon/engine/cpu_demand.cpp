#include "engine/cpu_demand.h"

#include <algorithm>

namespace swapd::daemon {

void CpuDemand::look(pid_t tid, Duration so_far, bool runnable, Time now) {
  const auto [at, is_new] = threads_.try_emplace(tid, Last{.so_far = so_far, .at = now});
  Last& last = at->second;
  if (is_new || now <= last.at) return;
  double part = std::chrono::duration<double>(so_far - last.so_far) / std::chrono::duration<double>(now - last.at);
  part = std::clamp(part, 0.0, 1.0);
  if (part < little && runnable) part = 1;  // it has waited all the time
  last = {
      .so_far = so_far, .at = now, .part = last.known ? last.part + (part - last.part) * newest : part, .known = true};
}

double CpuDemand::of(pid_t tid) const {
  const auto at = threads_.find(tid);
  return at == threads_.end() ? 1 : at->second.part;
}

void CpuDemand::forget_before(Time time) {
  std::erase_if(threads_, [&](const auto& one) { return one.second.at < time; });
}

}  // namespace swapd::daemon
