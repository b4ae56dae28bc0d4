#include "engine/job_groups.h"

#include <unistd.h>

#include <algorithm>

#include "actuate/group_booster.h"

namespace swapd::daemon {

void GroupUse::fade() {
  kept_.clear();
  for (auto& [group, use] : groups_) {
    use.all *= kept_of_a_window;
    for (auto& [job, samples] : use.by_job) samples *= kept_of_a_window;
    std::erase_if(use.by_job, [](const auto& one) { return one.second < 0.01; });
  }
  std::erase_if(groups_, [](const auto& one) { return one.second.by_job.empty(); });
}

void GroupUse::add(std::uint64_t job, const std::vector<std::string>& groups, std::uint64_t samples) {
  for (const std::string& group : groups) {
    groups_[group].all += static_cast<double>(samples);
    groups_[group].by_job[job] += static_cast<double>(samples);
  }
}

int GroupUse::owned(std::uint64_t job, const std::vector<std::string>& groups) const {
  int levels = 0;
  for (const std::string& group : groups) {
    const auto use = groups_.find(group);
    if (job == 0 || use == groups_.end() || kept_.contains(group)) break;
    const auto own = use->second.by_job.find(job);
    if (own == use->second.by_job.end()) break;
    if (own->second < nearly_all * use->second.all) break;
    ++levels;
  }
  return levels;
}

bool Wanting::look(pid_t tid, const sys::Procfs::SchedStat& now, Time at) {
  const auto place = threads_.find(tid);
  if (place == threads_.end()) return false;
  Known& known = place->second;
  const Duration wanted = now.cpu + now.waited;
  const Duration time = at - known.since;
  const Duration more = wanted - known.wanted.value_or(wanted);
  const bool is_busy = time >= least && static_cast<double>(more.count()) >= busy * static_cast<double>(time.count());
  if (!known.wanted || more < Duration::zero() || time >= most || is_busy) {
    known.since = at;
    known.wanted = wanted;
  }
  return is_busy;
}

void Wanting::forget_old(Time now) {
  std::erase_if(threads_, [&](const auto& one) { return now - one.second.met > kept; });
}

std::vector<pid_t> Wanting::threads() const {
  std::vector<pid_t> tids;
  for (const auto& [tid, known] : threads_) tids.push_back(tid);
  return tids;
}

void OwnWeights::add(pid_t tid, std::uint32_t seen, bool lowered, Time now) {
  Known& known = threads_[tid];
  known.seen = now;
  if (lowered) {
    known.not_yet = settling;
  } else if (known.not_yet > 0) {
    --known.not_yet;
  } else if (seen > 0) {
    known.weight = known.weight <= 0 ? seen : known.weight + (seen - known.weight) * lately;
  }
}

std::uint32_t OwnWeights::of(pid_t tid) const {
  const auto known = threads_.find(tid);
  return known == threads_.end() ? 0 : static_cast<std::uint32_t>(known->second.weight);
}

void OwnWeights::forget_old(Time now) {
  std::erase_if(threads_, [&](const auto& one) { return now - one.second.seen > kept; });
}

// In the root cgroup that is the session's autogroup, else the cgroup and those above it.
const std::vector<std::string>& JobGroups::groups_of(pid_t tid, Time now) {
  Place& place = places_[tid];
  if (place.seen != Time{} && now - place.seen < lasts) return place.groups;
  place = {.groups = {}, .seen = now};
  const auto group = groups_.group_of(tid);
  if (!group.ok()) return place.groups;
  if (*group != "/") {
    place.groups = actuate::lineage(*group);
  } else if (groups_.autogroups()) {
    if (const auto own = groups_.autogroup(tid); own.ok()) place.groups = {"autogroup-" + std::to_string(own->id)};
  }
  return place.groups;
}

void JobGroups::look(std::span<const Seen> window, Time now) {
  use_.fade();
  std::erase_if(places_, [&](const auto& one) { return now - one.second.seen > 2 * lasts; });
  others_.forget_old(now);
  if (window.size() > max_threads) return;
  for (const Seen& seen : window) use_.add(seen.job, groups_of(seen.tid, now), seen.samples);
  look_for_others(window, now);
  std::erase_if(visited_, [&](const auto& one) { return now - one.second > visited; });
  for (const auto& [group, at] : visited_) use_.keep({group});
  use_.keep(groups_of(::getpid(), now));  // swapd must be in time
}

// Threads in a job's groups that are not the job's, and want a CPU.
void JobGroups::look_for_others(std::span<const Seen> window, Time now) {
  std::map<std::string, std::set<std::uint64_t>> jobs;  // by group
  for (const Seen& seen : window)
    if (seen.job != 0)
      for (const std::string& group : groups_of(seen.tid, now)) jobs[group].insert(seen.job);
  for (const Seen& seen : window) {
    const std::vector<std::string>& groups = groups_of(seen.tid, now);
    const bool beside_a_job = std::ranges::any_of(groups, [&](const std::string& group) {
      const auto known = jobs.find(group);
      return known != jobs.end() && (known->second.size() > 1 || !known->second.contains(seen.job));
    });
    if (beside_a_job) others_.met(seen.tid, now);
  }
  for (const pid_t tid : others_.threads()) {
    const auto stat = procfs_.schedstat(tid);
    if (!stat || !others_.look(tid, *stat, now)) continue;
    for (const std::string& group : groups_of(tid, now)) visited_[group] = now;
  }
}

int JobGroups::owned(pid_t tid, std::uint64_t job) const {
  const auto place = places_.find(tid);
  return place == places_.end() ? 0 : use_.owned(job, place->second.groups);
}

}  // namespace swapd::daemon
