#include "shaping/io_uring_workers.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace swapd::daemon {
namespace {

constexpr Duration listed_every = std::chrono::milliseconds(10);
constexpr std::size_t threads_a_list = 64;  // takes no longer than one
constexpr int looked_at_once = 16;
constexpr Duration look_rest = std::chrono::microseconds(50);  // for each worker: a look takes some 2 us
constexpr std::size_t max_workers = 512, max_noted = 1024;

void forget_traffic(pid_t tid, IoUringWorkers::Traffic by) {
  if (by) by->forget(tid);
}

}  // namespace

IoUringWorkers::~IoUringWorkers() {
  for (auto& [tgid, process] : processes_) let_go(process);
}

void IoUringWorkers::let_go(Process& process) {
  for (const auto& [tid, worker] : process.workers) forget_traffic(tid, worker.by);
}

void IoUringWorkers::forget(pid_t tgid) {
  const auto found = processes_.find(tgid);
  if (found == processes_.end()) return;
  let_go(found->second);
  processes_.erase(found);
}

// Forgets the workers of processes that have ended.
void IoUringWorkers::prune() {
  std::vector<pid_t> ended;
  for (const auto& [tgid, process] : processes_)
    if (!procfs_.thread_count(tgid)) ended.push_back(tgid);
  for (const pid_t tgid : ended) forget(tgid);
  if (processes_.size() >= max_noted) forget(processes_.begin()->first);
  prune_at_ = std::clamp(2 * processes_.size(), std::size_t{64}, max_noted);
}

void IoUringWorkers::note(pid_t tgid, Traffic traffic, Time now) {
  if (processes_.contains(tgid)) return;
  if (processes_.size() >= prune_at_) prune();
  Process& process = processes_[tgid];
  if (!list(tgid, process, traffic, now)) return forget(tgid);
  decide::CallerMoved before;  // is charged to no thread
  look(process, now, before);
}

void IoUringWorkers::grown(pid_t tgid, Traffic traffic, Time now, decide::CallerMoved& moved) {
  const auto found = processes_.find(tgid);
  if (found == processes_.end()) return;
  Process& process = found->second;
  const bool changed = procfs_.thread_count(tgid).value_or(process.threads) != process.threads;
  if ((changed || now >= process.next_list) && !list(tgid, process, traffic, now)) {
    return forget(tgid);
  }
  if (now >= process.next_look) look(process, now, moved);
}

// False: the process has ended.
bool IoUringWorkers::list(pid_t tgid, Process& process, Traffic traffic, Time now) const {
  auto threads = procfs_.threads(tgid).value_or({});
  process.next_list = now + listed_every * (1 + threads.size() / threads_a_list);
  process.threads = threads.size();
  std::ranges::sort(threads);
  const auto before = std::exchange(process.others, {});
  for (const pid_t tid : threads) {
    if (process.workers.contains(tid)) continue;
    const bool known = std::ranges::binary_search(before, tid);
    const auto stat = known ? std::nullopt : std::optional(procfs_.stat(tid));
    if (!stat || !*stat || !(*stat)->ring_worker) {
      process.others.push_back(tid);
    } else if (auto io = sys::ThreadIo::open(procfs_.root(), tid); io && process.workers.size() < max_workers) {
      const bool counts = traffic && traffic->count(tid).ok();
      process.workers.emplace(
          tid,
          Process::Worker{.io = std::move(io).value(), .counted = {}, .by = counts ? traffic : nullptr, .traffic = {}});
    }
  }
  return !threads.empty();
}

void IoUringWorkers::look(Process& process, Time now, decide::CallerMoved& moved) {
  for (auto at = process.workers.begin(); at != process.workers.end();) {
    auto& [tid, worker] = *at;
    const auto counted = worker.io.read();
    if (!counted) {  // the id may be another one's
      forget_traffic(tid, worker.by);
      at = process.workers.erase(at);
      continue;
    }
    const IoCounters more = sys::between(std::exchange(worker.counted, *counted), *counted);
    if (more.read_bytes > 0 || more.written_bytes > 0) moved.workers.push_back({.tid = tid, .disk = more});
    if (const auto traffic = worker.by ? worker.by->read(tid).value_or({}) : sys::NetIo::Counters{};
        traffic.received >= worker.traffic.received && traffic.sent >= worker.traffic.sent) {
      moved.workers_traffic.received += traffic.received - worker.traffic.received;
      moved.workers_traffic.sent += traffic.sent - worker.traffic.sent;
      worker.traffic = traffic;
    }
    ++at;
  }
  const auto count = static_cast<int>(process.workers.size());
  process.next_look = count > looked_at_once ? now + look_rest * count : now;
}

}  // namespace swapd::daemon
