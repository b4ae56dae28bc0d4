#include "observe/seccomp/waker_inference.h"

#include <algorithm>

namespace swapd::observe {

void WakerInference::forget_old() {
  while (recent_.size() > max_recent) recent_.pop_front();
}

void WakerInference::on_wake(pid_t woken, ThreadId by, Time time) {
  Wake& last = last_wake_[woken];
  if (time >= last.time) last = {by, time};
}

void WakerInference::on_blocked(const Blocked& blocked) {
  wait_start_[blocked.thread] = blocked.time;
  on_resolved(blocked);
}

void WakerInference::name(Woken& woken) {
  const auto start = wait_start_.find(woken.thread);
  if (start == wait_start_.end()) return;
  if (const auto last = last_wake_.find(woken.thread.tid);
      last != last_wake_.end() && last->second.time >= start->second) {
    woken.by = last->second.by;
    return;
  }
  const auto& awaited = awaited_[woken.thread];
  for (auto access = recent_.rbegin(); access != recent_.rend() && access->time >= start->second; ++access) {
    if (access->by == woken.thread || std::ranges::find(awaited, access->resource) == awaited.end()) continue;
    woken.by = access->by;
    woken.through = access->resource;
    return;
  }
}

void WakerInference::unwatch(ThreadId thread) {
  wait_start_.erase(thread);
  awaited_.erase(thread);
}

void WakerInference::forget(ThreadId thread) {
  unwatch(thread);
  last_wake_.erase(thread.tid);
  std::erase_if(recent_, [&](const Access& access) { return access.by == thread; });
}

}  // namespace swapd::observe
