#include "ring_workers.h"

#include <algorithm>
#include <utility>

namespace swapd::daemon {
namespace {

constexpr Duration listed_every = std::chrono::milliseconds(10);
constexpr std::size_t threads_a_list = 64;  // takes no longer than one
constexpr std::size_t most_noted = 1024;

}  // namespace

void RingWorkers::note(pid_t tgid, Time now) {
  if (processes_.contains(tgid)) return;
  if (processes_.size() >= most_noted) processes_.clear();
  Process& process = processes_[tgid];
  list(tgid, process, now);
  (void)look(process);  // what they had moved before is nobody's
}

sys::IoCounters RingWorkers::grown(pid_t tgid, Time now) {
  const auto found = processes_.find(tgid);
  if (found == processes_.end()) return {};
  Process& process = found->second;
  if (now >= process.next_list || procfs_.thread_count(tgid).value_or(process.threads) != process.threads)
    list(tgid, process, now);
  return look(process);
}

void RingWorkers::list(pid_t tgid, Process& process, Time now) const {
  auto threads = procfs_.threads(tgid).value_or({});
  process.next_list = now + listed_every * (1 + threads.size() / threads_a_list);
  process.threads = threads.size();
  std::ranges::sort(threads);
  const auto before = std::exchange(process.others, {});
  for (const pid_t tid : threads) {
    if (process.workers.contains(tid)) continue;
    const bool known = std::ranges::binary_search(before, tid);
    const auto stat = known ? std::nullopt : std::optional(procfs_.stat(tid));
    if (stat && *stat && (*stat)->ring_worker) {
      if (auto io = sys::ThreadIo::open(procfs_.root(), tid))
        process.workers.emplace(tid, Process::Worker{.io = std::move(io).value(), .counted = {}});
    } else {
      process.others.push_back(tid);
    }
  }
}

// One that has ended since the last look is lost; idle they live on for five seconds.
sys::IoCounters RingWorkers::look(Process& process) {
  sys::IoCounters sum;
  for (auto at = process.workers.begin(); at != process.workers.end();) {
    Process::Worker& worker = at->second;
    const auto counted = worker.io.read();
    if (!counted) {  // the id may be another one's
      at = process.workers.erase(at);
      continue;
    }
    const sys::IoCounters more = sys::between(std::exchange(worker.counted, *counted), *counted);
    sum.read_bytes += more.read_bytes;
    sum.written_bytes += more.written_bytes;
    ++at;
  }
  return sum;
}

}  // namespace swapd::daemon
