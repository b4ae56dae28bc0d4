#include "engine/own_cpu.h"

#include <algorithm>
#include <utility>

#include "sys/process/self_process.h"

namespace swapd::daemon {

std::optional<Duration> OwnCpu::measure(Time now, const Help& help, Duration apart) {
  const bool begins = std::exchange(begun_, help.begun) != help.begun;
  helped_ = helped_ || help.gangs > 0 || (help.competes && (help.boosts > 0 || begins));
  if (!budget_.due(now)) return {};
  const Duration before = budget_.patience();
  apart_ = apart;
  const Duration used = sys::process_cpu_time() - apart;
  const Duration patience = budget_.update(now, used, std::exchange(helped_, false));
  return patience == before ? std::nullopt : std::optional(patience);
}

Duration OwnCpu::wait(Time now) { return budget_.wait(now, sys::process_cpu_time() - apart_); }

CpuTimes OwnCpu::times(Duration worker, Duration receivers, Duration jobs, Duration memory) {
  CpuTimes out{.engine = sys::own_cpu_time(), .worker = worker, .receivers = receivers, .jobs = jobs, .memory = memory};
  out.total = sys::process_cpu_time();  // last, so that nothing is left of it if the control thread has done nothing
  out.control = std::max(out.total - out.engine - out.worker - out.receivers - out.jobs - out.memory, Duration::zero());
  return out;
}

BudgetUse OwnCpu::budget() const {
  return {.share = budget_.config().share,
          .share_now = budget_.share(),
          .used = budget_.used(),
          .wait = budget_.wait(),
          .patience = budget_.patience()};
}

}  // namespace swapd::daemon
