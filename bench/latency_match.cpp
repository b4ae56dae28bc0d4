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

// How long the provider had no CPU between the two.
Duration without_cpu(const Seen& seen, Time from, Time to) {
  auto took = first_from(seen.took, from), lost = first_from(seen.lost, from);
  // It had one at `from` if the first thing that happened later was a loss.
  bool has = lost != seen.lost.end() && (took == seen.took.end() || lost->time < took->time);
  Duration without{};
  for (Time at = from; at < to; has = !has) {
    auto& next = has ? lost : took;
    const auto& all = has ? seen.lost : seen.took;
    while (next != all.end() && next->time < at) ++next;
    const Time until = next == all.end() ? to : std::min(next->time, to);
    if (!has) without += until - at;
    at = until;
  }
  return without;
}

}  // namespace

Latencies latencies(const std::vector<WaitWindow>& waits, Seen seen) {
  for (auto* events : {&seen.blocks, &seen.entered, &seen.left, &seen.took, &seen.lost}) {
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
    const Time changed_at = change->time + Duration(change->value);
    const auto ms = [](Duration took) { return std::chrono::duration<double, std::milli>(took).count(); };
    result.ms.push_back(ms(changed_at - block->time));
    result.without_cpu_ms.push_back(ms(without_cpu(seen, block->time, changed_at)));
  }
  return result;
}

}  // namespace swapd::bench
