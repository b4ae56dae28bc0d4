#include "decide/coscheduling/job_finder.h"

#include <algorithm>

namespace swapd::decide {

namespace {

constexpr double lately = 0.25;         // of a window, in what is remembered
constexpr double passing_groups = 0.9;  // a group that is due more competes only with what comes and goes

void note_share(JobFinder::Member& member, const ThreadProfiled& seen) {
  // What threads of other groups take now and then, all of the group lose alike. Where they compete for good, the group
  // is due its weight.
  const double group = seen.upper > passing_groups ? seen.group_use : seen.upper;
  member.group_part = group;
  const double found = seen.inner * group;
  member.upper = member.windows == 0 ? seen.upper : member.upper + (seen.upper - member.upper) * lately;
  member.seen_shares.at(member.windows++ % member.seen_shares.size()) = found;
  auto known = member.seen_shares;
  const auto end = known.begin() + std::min<std::ptrdiff_t>(member.windows, std::ssize(known));
  const auto middle = known.begin() + (end - known.begin()) / 2;
  std::nth_element(known.begin(), middle, end);
  member.seen_share = *middle;
}

}  // namespace

void JobFinder::add(const ThreadProfiled& seen, bool declared) {
  fresh_ = true;
  const double window = std::chrono::duration<double>(seen.window).count();
  const double cpu = window <= 0 ? 0 : std::chrono::duration<double>(seen.cpu).count() / window;
  if (jobs_.size() >= config_.max_jobs && !jobs_.contains(seen.job)) return;
  Job& job = jobs_[seen.job];
  job.declared = declared;
  auto at = std::ranges::lower_bound(job.members, seen.thread, {}, &Member::thread);
  if (at == job.members.end() || at->thread != seen.thread) {
    // A thread that yields in a loop is left hardly any CPU time, and yet wants all of it.
    const bool busy = cpu >= config_.busy || seen.yielding >= config_.yields;
    if (!busy || job.members.size() >= config_.max_threads) return;
    at = job.members.insert(at, Member{.thread = seen.thread});
  }
  Member& member = *at;
  if (seen.share_known && member.lowered == 0) {
    note_share(member, seen);
  } else if (seen.share_known) {
    // Other threads that its group has for a moment wait there for long, because the group is lowered.
    ThreadProfiled alone = seen;
    alone.inner = 1;
    note_share(member, alone);
  }
  member.share = member.seen_share;
  member.cpu = std::min(cpu, 1.0);
  member.waiting = std::min(seen.spinning + seen.yielding, 1.0);
  // A library that waits in a loop of many functions shows neither. Processes that share memory and never block wait
  // somehow.
  const double windows = std::chrono::duration<double>(seen.window) / std::chrono::duration<double>(config_.never);
  if (seen.shares_memory && static_cast<double>(seen.blocks) < windows)
    member.waiting = std::max(member.waiting, config_.presumed);
  member.weight = seen.weight;
  member.group = seen.group;
  if (seen.group_weight > 0) member.group_weight = seen.group_weight;
  member.own_groups = seen.own_groups;
  member.cpu_number = seen.cpu_number;
  member.seen = seen.time;
}

// The weight that groups of jobs that run in slots have on the member's CPU if they are not lowered.
double JobFinder::hidden_groups(const Member& member) const {
  double hidden = 0;
  for (const auto& [id, job] : jobs_)
    for (const Member& one : job.members)
      if (one.lowered != 0 && one.group != member.group && one.cpu_number == member.cpu_number)
        hidden += one.group_weight;
  return hidden;
}

// A thread that runs in slots weighs next to nothing between them, which is not what it is due: among threads of one
// run queue each is due by its nice value, and among groups by the group's weight.
void JobFinder::correct_shares() {
  for (auto& [id, job] : jobs_) {
    for (Member& member : job.members) {
      member.share = member.seen_share;
      double hidden = 0;
      for (const auto& [other_id, other] : jobs_) {
        if (!other.running) continue;
        for (const Member& one : other.members)
          if (one.thread != member.thread && one.group == member.group && one.cpu_number == member.cpu_number)
            hidden += one.weight;
      }
      if (hidden > 0 && member.share > 0) {
        const double own = member.weight;
        const double upper_and_others = own / member.share;  // (own + others) / upper
        member.share = own / (upper_and_others + hidden);
      }
      member.groups_due = member.upper;
      const double groups = member.group_weight <= 0 ? 0 : hidden_groups(member) / member.group_weight;
      if (groups <= 0 || member.share <= 0 || member.upper <= 0) continue;
      member.share = 1 / (1 / member.share + groups);
      member.groups_due = 1 / (1 / member.upper + groups);
    }
  }
}

// How long its groups have been its alone.
void JobFinder::look_at_groups(Job& job) const {
  const bool owned = std::ranges::all_of(
      job.members, [](const Member& one) { return one.own_groups > 0 && one.own_groups >= one.lowered; });
  job.owned = owned && !job.members.empty() ? job.owned + 1 : 0;
  const bool higher = std::ranges::any_of(job.members, [](const Member& one) { return one.own_groups > one.lowered; });
  job.higher = job.running && owned && higher ? job.higher + 1 : 0;
}

// Its rivals are in other groups, and there is nothing in its own that could be lowered.
bool JobFinder::left_to_others(const Job& job, double upper) const {
  if (job.running && job.lowers_groups) return job.owned == 0 || job.higher >= config_.higher_windows;
  return upper < (job.running ? config_.grouped_end : config_.grouped_begin) && !(job.lowers_groups && !job.running);
}

void JobFinder::weigh(Job& job, int cpus) const {
  const auto threads = static_cast<double>(job.members.size());
  double upper = 0;
  for (const Member& member : job.members) upper += member.groups_due / threads;
  if (!job.running) job.lowers_groups = upper < config_.grouped_begin && job.owned >= config_.windows;
  double used = 0, wasted = 0, due = 0;
  for (const Member& member : job.members) {
    // The mate that had least of a CPU is the one that is waited for.
    double mate = 1;
    for (const Member& other : job.members)
      if (other.thread != member.thread) mate = std::min(mate, other.cpu);
    used += member.cpu;
    wasted += member.cpu * member.waiting * (1 - mate);
    // A thread that passes by in another group is no rival, unless the job's are to give way to that.
    const double group_part = job.lowers_groups ? 1 : std::max(member.group_part, 0.5);
    due += std::min(member.share / group_part, 1.0);
  }
  job.due = threads == 0 ? 1 : due / threads;
  if (!job.running) job.waste = used <= 0 ? 0 : wasted / used;
  const bool apart = threads >= 2 && !job.running && upper < config_.grouped_begin;
  if (threads < 2 || job.due > (job.running ? config_.quiet : config_.contended))
    job.verdict = apart ? State::grouped : State::alone;
  else if (threads > cpus)
    job.verdict = State::crowded;
  else if (left_to_others(job, upper))
    job.verdict = State::grouped;
  else if (job.waste < config_.waste && !job.declared)
    job.verdict = State::useful;
  else
    job.verdict = State::wanted;
}

void JobFinder::end_window(int cpus, Time now) {
  if (!fresh_) return;
  fresh_ = false;
  for (auto& [id, job] : jobs_)
    std::erase_if(job.members, [&](const Member& one) { return now - one.seen > config_.forget_after; });
  std::erase_if(jobs_, [](const auto& one) { return one.second.members.empty() && !one.second.running; });
  correct_shares();
  for (auto& [id, job] : jobs_) {
    look_at_groups(job);
    weigh(job, cpus);
    if (job.verdict == State::wanted) {
      ++job.for_;
      job.against = 0;
    } else {
      ++job.against;
      job.for_ = 0;
    }
  }
}

void JobFinder::set_running(JobId id, bool running) {
  const auto at = jobs_.find(id);
  if (at == jobs_.end()) return;
  Job& job = at->second;
  job.running = running;
  for (Member& member : job.members) {
    if (!running || !job.lowers_groups)
      member.lowered = 0;
    else if (member.lowered == 0)
      member.lowered = member.own_groups;
  }
}

void JobFinder::forget(ThreadId thread) {
  for (auto& [id, job] : jobs_) std::erase_if(job.members, [&](const Member& one) { return one.thread == thread; });
}

}  // namespace swapd::decide
