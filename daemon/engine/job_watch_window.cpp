// A window of the profile: the busy threads in it, their jobs, the room that these have, and who else is waited for.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "engine/job_watch.h"

namespace swapd::daemon {

namespace {

constexpr std::size_t max_windows = 8;  // that wait for the engine; of more the oldest goes

// It may be waiting on its CPU (decide/coscheduling/job_finder.h says more).
bool may_wait(const ProfileWindow::Thread& thread) {
  const sys::CpuProfile::Thread& seen = thread.seen;
  return thread.yields || (thread.waits() + seen.yields) * 10 >= seen.samples ||
         (thread.shares_memory && seen.blocks == 0);
}

// A thread that gives its CPU away has many short turns; so has one that is preempted by each thread that it wakes.
// Samples tell the two apart.
bool samples_may_yield(const ProfileWindow::Thread& thread) {
  constexpr std::uint64_t enough = 3;
  return thread.seen.samples < enough || thread.seen.yields + thread.waits() > 0;
}

// A thread that was found without samples says nothing of its group: that is not to be lowered because of it.
void find_group_others(std::span<const sys::CpuProfile::Thread> all, double samples, ProfileWindow& window) {
  std::map<std::uint64_t, double> whole;
  std::map<std::pair<std::uint64_t, std::uint64_t>, double> of_job;
  for (const sys::CpuProfile::Thread& seen : all) whole[seen.whole_group] += static_cast<double>(seen.samples);
  for (const ProfileWindow::Thread& thread : window.threads)
    of_job[{thread.seen.whole_group, thread.job}] += static_cast<double>(thread.seen.samples);
  for (ProfileWindow::Thread& thread : window.threads) {
    const std::uint64_t group = thread.seen.whole_group;
    if (group != 0) thread.group_others = (whole[group] - of_job[{group, thread.job}]) / std::max(samples, 1.0);
  }
}

// A message may be what it waits for, if it is its process's only busy thread and no process of this machine is known
// to be its mate (decide/coscheduling/job_finder.h). One that was found because it yields has hardly any samples.
bool any_may_be_called(const ProfileWindow& window, const MemorySharers& sharers, BusyWaiters& waiters) {
  for (const ProfileWindow::Thread& thread : window.threads)
    waiters.add(thread.seen.tid, thread.waits() + thread.seen.yields, thread.seen.samples);
  const auto busy_of = [&](std::uint64_t job) {
    return std::ranges::count_if(window.threads, [&](const ProfileWindow::Thread& thread) {
      return thread.job == job && thread.demand >= CpuDemand::little;
    });
  };
  const bool any = std::ranges::any_of(window.threads, [&](const ProfileWindow::Thread& thread) {
    return (thread.yields || waiters.waits(thread.seen.tid)) && !sharers.has_mates(thread.seen.tgid) &&
           busy_of(thread.job) == 1;
  });
  waiters.end_window();
  return any;
}

}  // namespace

// Looks at no more than so many threads of each process, and at no more than so many of all.
void JobWatch::add_yielders(const std::vector<pid_t>& managed, ProfileWindow& window) {
  constexpr std::size_t max_threads = 256, max_of_a_process = 64;
  const auto begun = yielders_.begin_round(window.ended, config_.yielders_again);
  if (!begun) return;
  const Duration since = std::min<Duration>(*begun, 2 * config_.yielders_again);
  std::size_t looked = 0;
  for (const pid_t pid : managed) {
    const auto tids = kernel_.procfs.threads(pid);
    if (!tids || tids->size() > max_of_a_process) continue;
    for (const pid_t tid : *tids) {
      const auto stat = ++looked > max_threads ? Error(E2BIG, "threads") : kernel_.procfs.schedstat(tid);
      if (!stat || !yielders_.look(tid, *stat, window.ended)) continue;
      profile_->follow(tid);
      const auto known = std::ranges::find(window.threads, tid, [](const auto& one) { return one.seen.tid; });
      if (known != window.threads.end()) {
        known->yields = samples_may_yield(*known);
        continue;
      }
      // The share that is due to the thread is a guess until a sample has met it.
      sys::CpuProfile::Thread seen{
          .tid = tid, .tgid = pid, .samples = 1, .yields = 1, .inner = 1 / contention_.crowd()};
      seen.cpu_time =
          yielders_.used(tid) * (window.ended - window.begun).count() / std::max<Duration::rep>(since.count(), 1);
      seen.looks = 1;
      seen.weight = 1024;
      window.threads.push_back({.seen = seen, .job = 0, .yields = true, .group_use = 1});
    }
  }
  yielders_.end_round();
}

void JobWatch::look_at_room(ProfileWindow& window) {
  for (const ProfileWindow::Thread& thread : window.threads)
    if (const auto allowed = kernel_.scheduler.affinity(thread.seen.tid))
      room_.cpus.set(thread.job, thread.seen.tid, *allowed, window.ended);
  look_at_demand(window);
  room_.cpus.end_window(window.ended);
  for (ProfileWindow::Thread& thread : window.threads) {
    thread.fits = room_.cpus.fits(thread.job);
    thread.room = room_.cpus.room(thread.job);
  }
}

// How much of the time the threads of jobs that may wait on their CPUs have or want one, those too that no sample has
// met in this window: they are added to it, because a mate that waits for its CPU is waited for, and one that sleeps is
// not.
void JobWatch::look_at_demand(ProfileWindow& window) {
  constexpr std::size_t max_looks = 64;
  std::map<std::uint64_t, ProfileWindow::Thread> waiting;  // by job, a thread of it
  std::set<pid_t> met;
  for (const ProfileWindow::Thread& thread : window.threads) {
    met.insert(thread.seen.tid);
    if (may_wait(thread)) waiting.emplace(thread.job, thread);
  }
  std::size_t looks = 0;
  for (const auto& [job, one] : waiting) {
    for (const pid_t tid : room_.cpus.threads_of(job)) {
      if (++looks > max_looks) break;
      const auto so_far = kernel_.procfs.schedstat(tid);
      const auto stat = kernel_.procfs.stat(tid);
      if (!so_far || !stat) continue;
      room_.demand.look(tid, so_far->cpu + so_far->waited, stat->state == 'R', window.ended);
      room_.cpus.sleeps(tid, room_.demand.of(tid) < CpuDemand::little);
      if (met.contains(tid)) continue;
      window.threads.push_back({.seen = {.tid = tid, .tgid = kernel_.procfs.tgid(tid).value_or(tid)},
                                .job = job,
                                .shares_memory = one.shares_memory});
    }
  }
  for (ProfileWindow::Thread& thread : window.threads) thread.demand = room_.demand.of(thread.seen.tid);
  room_.demand.forget_before(window.ended - CpuRoom::forget_after);
}

// Neither a thread of the kernel nor of swapd.
bool JobWatch::is_users(pid_t tgid) const {
  constexpr pid_t kthreadd = 2;
  if (tgid == ::getpid() || tgid == kthreadd) return false;
  const auto stat = kernel_.procfs.stat(tgid);
  return stat.ok() && stat->ppid != kthreadd;
}

void JobWatch::tell_window(Time begun) {
  const std::vector<pid_t> managed = processes();
  ProfileWindow window{.begun = begun, .ended = kernel_.clock.now(), .threads = {}};
  std::vector<pid_t> busy;
  std::map<std::pair<std::uint64_t, int>, std::uint64_t> group_samples;  // by group and CPU
  const std::vector<sys::CpuProfile::Thread> all = profile_->read();
  for (const sys::CpuProfile::Thread& seen : all) group_samples[{seen.group, seen.cpu}] += seen.samples;
  const auto samples = static_cast<double>((window.ended - window.begun) / config_.period);
  window.of_all = samples * contention_.cpus();
  for (const sys::CpuProfile::Thread& seen : all) {
    if (!std::ranges::binary_search(managed, seen.tgid)) {
      // More than a tenth need not be told apart: on a large machine the reads of /proc would be many.
      if (static_cast<double>(window.others) * 10 < window.of_all && is_users(seen.tgid)) window.others += seen.samples;
      continue;
    }
    profile_->follow(seen.tid);
    const double used = static_cast<double>(group_samples[{seen.group, seen.cpu}]) / std::max(samples, 1.0);
    window.threads.push_back({.seen = seen, .job = 0, .group_use = std::min(used, 1.0)});
  }
  add_yielders(managed, window);
  for (const ProfileWindow::Thread& thread : window.threads) busy.push_back(thread.seen.tgid);
  std::ranges::sort(busy);
  busy.erase(std::unique(busy.begin(), busy.end()), busy.end());
  read_mappings(busy, managed, window.ended);
  for (ProfileWindow::Thread& thread : window.threads) {
    thread.job = static_cast<std::uint64_t>(mappings_.sharers.job_of(thread.seen.tgid));
    thread.shares_memory = mappings_.sharers.shares(thread.seen.tgid);
    const double in_library = mappings_.libraries.part(thread.seen.tgid, thread.seen.places);
    thread.in_library = static_cast<std::uint64_t>(std::lround(in_library * static_cast<double>(thread.seen.in_user)));
  }
  find_group_others(all, samples, window);
  look_at_room(window);
  follow_messages(any_may_be_called(window, mappings_.sharers, messages_.waiters));
  const bool waiting = std::ranges::any_of(window.threads, may_wait);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    turns_.end_window(waiting || shared_.coscheduled, window.ended);
    first = shared_.windows.empty();
    if (shared_.windows.size() >= max_windows) shared_.windows.erase(shared_.windows.begin());
    shared_.windows.push_back(std::move(window));
  }
  if (first) notify_();
}

}  // namespace swapd::daemon
