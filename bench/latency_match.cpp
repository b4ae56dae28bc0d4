#include <algorithm>

#include "latency.h"

namespace swapd::bench {

namespace {

Time at(std::int64_t ns) { return Time(Duration(ns)); }

// The first at or after `from`; the events are in order.
auto first_from(const std::vector<KernelEvent>& events, Time from) {
  return std::lower_bound(events.begin(), events.end(), from,
                          [](const KernelEvent& event, Time time) { return event.time < time; });
}

// When each successful change came into force.
std::vector<KernelEvent> changes(const Seen& seen) {
  std::vector<KernelEvent> changes;
  for (const KernelEvent& entry : seen.entered) {
    for (auto exit = first_from(seen.left, entry.time); exit != seen.left.end(); ++exit) {
      if (exit->tid != entry.tid) continue;
      // The time it was entered stays beside the time it returned: which of two waits it was meant for shows there.
      if (exit->value == 0) changes.push_back({entry.time, exit->tid, (exit->time - entry.time).count()});
      break;
    }
  }
  return changes;
}

}  // namespace

Latencies latencies(const std::vector<WaitWindow>& waits, Seen seen) {
  for (auto* events : {&seen.blocks, &seen.entered, &seen.left}) {
    std::sort(events->begin(), events->end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  }
  const auto changed = changes(seen);
  Latencies result;
  for (const WaitWindow& wait : waits) {
    const auto block = first_from(seen.blocks, at(wait.begun_ns));
    const auto end = at(wait.ended_ns);
    const auto change = block == seen.blocks.end() ? changed.end() : first_from(changed, block->time);
    if (block == seen.blocks.end() || block->time > end || change == changed.end() ||
        change->time + Duration(change->value) > end) {
      ++result.missed;
      continue;
    }
    const Duration took = change->time + Duration(change->value) - block->time;
    result.ms.push_back(std::chrono::duration<double, std::milli>(took).count());
  }
  return result;
}

}  // namespace swapd::bench
