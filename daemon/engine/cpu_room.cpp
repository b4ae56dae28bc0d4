#include "engine/cpu_room.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace swapd::daemon {

namespace {

// Finds a CPU for one thread more, for which others may have to move: augmenting paths of bipartite matching.
class Places {
 public:
  explicit Places(const std::vector<cpu_set_t>& allowed) : allowed_(allowed) {}
  bool place(std::size_t thread) {
    CPU_ZERO(&tried_);
    return find(thread);
  }

 private:
  bool find(std::size_t thread) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed_[thread]) || CPU_ISSET(cpu, &tried_)) continue;
      CPU_SET(cpu, &tried_);
      const auto [at, is_free] = taken_.try_emplace(cpu, thread);
      if (!is_free && !find(at->second)) continue;
      at->second = thread;
      return true;
    }
    return false;
  }

  const std::vector<cpu_set_t>& allowed_;
  std::map<int, std::size_t> taken_;
  cpu_set_t tried_{};
};

}  // namespace

bool fit_at_once(const std::vector<cpu_set_t>& allowed) {
  if (allowed.empty()) return true;
  const auto same = [&](const cpu_set_t& one) { return CPU_EQUAL(&one, &allowed.front()); };
  if (std::ranges::all_of(allowed, same))
    return allowed.size() <= static_cast<std::size_t>(CPU_COUNT(&allowed.front()));
  Places places(allowed);
  for (std::size_t thread = 0; thread < allowed.size(); ++thread)
    if (!places.place(thread)) return false;
  return true;
}

void CpuRoom::set(std::uint64_t job, pid_t tid, const cpu_set_t& allowed, Time now) {
  const auto [at, is_new] = threads_.try_emplace(tid);
  Thread& thread = at->second;
  changed_ = changed_ || is_new || thread.job != job || !CPU_EQUAL(&thread.allowed, &allowed);
  thread = {.job = job, .allowed = allowed, .heard = now, .sleeps = thread.sleeps};
}

void CpuRoom::sleeps(pid_t tid, bool on) {
  const auto at = threads_.find(tid);
  if (at != threads_.end() && std::exchange(at->second.sleeps, on) != on) changed_ = true;
}

std::vector<pid_t> CpuRoom::threads_of(std::uint64_t job) const {
  std::vector<pid_t> tids;
  for (const auto& [tid, thread] : threads_)
    if (thread.job == job) tids.push_back(tid);
  return tids;
}

void CpuRoom::end_window(Time now) {
  const auto forgotten =
      std::erase_if(threads_, [&](const auto& one) { return now - one.second.heard > forget_after; });
  if (!std::exchange(changed_, false) && forgotten == 0) return;
  std::map<std::uint64_t, std::vector<cpu_set_t>> jobs;
  for (const auto& [tid, thread] : threads_)
    if (!thread.sleeps) jobs[thread.job].push_back(thread.allowed);
  crowded_.clear();
  for (const auto& [job, allowed] : jobs)
    if (!fit_at_once(allowed)) crowded_.insert(job);
  find_rooms(jobs);
}

std::uint64_t CpuRoom::room(std::uint64_t job) const {
  const auto at = rooms_.find(job);
  return at == rooms_.end() ? 0 : at->second;
}

void CpuRoom::find_rooms(const std::map<std::uint64_t, std::vector<cpu_set_t>>& jobs) {
  rooms_.clear();
  for (const auto& [job, allowed] : jobs)
    if (allowed.size() > 1 && !crowded_.contains(job)) rooms_[job] = job;
  if (rooms_.size() > max_jobs) {
    const std::uint64_t lowest = rooms_.begin()->first;
    for (auto& [job, room] : rooms_) room = lowest;
    return;
  }
  // In the order of the jobs, so that the lowest of a room names it.
  for (auto one = rooms_.begin(); one != rooms_.end(); ++one) {
    for (auto other = std::next(one); other != rooms_.end(); ++other) {
      if (one->second == other->second) continue;
      std::vector<cpu_set_t> both = jobs.at(one->first);
      both.insert(both.end(), jobs.at(other->first).begin(), jobs.at(other->first).end());
      if (fit_at_once(both)) continue;
      const auto [lower, upper] = std::minmax({one->second, other->second});
      for (auto& [job, room] : rooms_)
        if (room == upper) room = lower;
    }
  }
}

}  // namespace swapd::daemon
