#include "engine/engine_affinity.h"

#include <algorithm>

namespace swapd::daemon {

namespace {
cpu_set_t without(cpu_set_t allowed, std::span<const int> those) {
  for (const int cpu : those)
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_CLR(static_cast<std::size_t>(cpu), &allowed);
  return allowed;
}
}  // namespace

cpu_set_t keep_off(const cpu_set_t& allowed, std::span<const int> busy) {
  cpu_set_t left = without(allowed, busy);
  if (CPU_COUNT(&left) == 0) left = without(allowed, busy.first(std::min<std::size_t>(busy.size(), 1)));
  return CPU_COUNT(&left) == 0 ? allowed : left;
}

bool EngineAffinity::has_no_other(std::span<const int> busy) const {
  const cpu_set_t left = without(allowed_, busy);
  return CPU_COUNT(&left) == 0;
}

bool EngineAffinity::move(int own, std::span<const int> busy, Time now, cpu_set_t& cpus) {
  if (std::ranges::find(busy, own) == busy.end()) return false;
  if (rests(now)) return false;
  cpus = keep_off(allowed_, busy);
  if (own >= 0 && own < CPU_SETSIZE && CPU_ISSET(static_cast<std::size_t>(own), &cpus)) return false;  // no better one
  moved_ = now;
  return true;
}

}  // namespace swapd::daemon
