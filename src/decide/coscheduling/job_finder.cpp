#include "decide/coscheduling/job_finder.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {

namespace {

constexpr double lately = 0.25;                    // of a window, in what is remembered
constexpr double passing_groups = 0.9;             // a group that is due more competes only with what comes and goes
constexpr double lowered_by = 1024.0 / 15;         // the weights of nice 0 and nice 19
constexpr double in_force_below = 0.25;            // a lowered group is due less, or has no rival to speak of …
constexpr double without_rivals = passing_groups;  // … and then more than this
constexpr int unmoved_windows = 2;

// upper: what its groups are due of its CPU.
void note_share(JobFinder::Member& member, const ThreadProfiled& seen, double upper) {
  // All threads of the group lose alike what threads of other groups take now and then. If those compete for good, the
  // group is due its weight.
  const double group = upper > passing_groups ? seen.group_use : upper;
  member.group_part = group;
  const double found = seen.inner * group;
  member.upper = member.windows == 0 ? upper : member.upper + (upper - member.upper) * lately;
  member.seen_shares.at(member.windows++ % member.seen_shares.size()) = found;
  auto known = member.seen_shares;
  const auto end = known.begin() + std::min<std::ptrdiff_t>(member.windows, std::ssize(known));
  const auto middle = known.begin() + (end - known.begin()) / 2;
  std::nth_element(known.begin(), middle, end);
  member.seen_share = *middle;
}

// CPU time of the mate that had least of it in the window, which is the one that is waited for.
double least_of_mates(const JobFinder::Job& job, const JobFinder::Member& member) {
  double least = 1;
  for (const JobFinder::Member& other : job.members)
    if (other.thread != member.thread) least = std::min(least, other.cpu);
  return least;
}

}  // namespace

void JobFinder::add(const ThreadProfiled& seen, bool declared) {
  fresh_ = true;
  const double window = std::chrono::duration<double>(seen.window).count();
  const double cpu = window <= 0 ? 0 : std::chrono::duration<double>(seen.cpu).count() / window;
  if (jobs_.size() >= config_.max_jobs && !jobs_.contains(seen.job)) return;
  take_from_others(seen.job, seen.thread);
  Job& job = jobs_[seen.job];
  job.heard = true;
  job.declared = declared;
  job.fits = seen.fits;
  job.room = seen.room;
  auto at = std::ranges::lower_bound(job.members, seen.thread, {}, &Member::thread);
  if (seen.demand < config_.demand) {
    if (at != job.members.end() && at->thread == seen.thread) job.members.erase(at);
    return;
  }
  if (at == job.members.end() || at->thread != seen.thread) {
    // A thread that yields in a loop is left hardly any CPU time, and yet wants all of it.
    const bool busy = cpu >= config_.busy || seen.yielding >= config_.yields;
    if (!busy || job.members.size() >= config_.max_threads) return;
    at = job.members.insert(at, Member{.thread = seen.thread});
  }
  Member& member = *at;
  if (seen.weight != 0) member.group_others = seen.group_others;
  // The window in which its groups were lowered says both.
  const bool lowered = job.running && job.lowers_group;
  if (seen.share_known && (!lowered || job.lowered_for > 0)) {
    member.raw_upper = seen.upper;
    note_share(member, seen, own_upper(seen.job, job, seen));
  }
  member.share = member.seen_share;
  member.cpu = std::min(cpu, 1.0);
  if (seen.weight != 0) member.spinning = std::min(seen.spinning, 1.0);
  if (seen.weight != 0) member.waiting = member.polling = std::min(seen.spinning + seen.yielding, 1.0);
  // A library that waits in a loop of many functions shows neither. Processes that share memory and never block
  // wait somehow.
  const double windows = std::chrono::duration<double>(seen.window) / std::chrono::duration<double>(config_.never);
  if (seen.shares_memory && static_cast<double>(seen.blocks) < windows)
    member.waiting = std::max(member.waiting, config_.presumed);
  if (seen.weight != 0) {
    member.weight = seen.weight;
    member.group = seen.group;
    member.rivals = seen.rivals;
    member.cpu_number = seen.cpu_number;
    job.turn_cpus[seen.cpu_number] = seen.time;
  }
  member.seen = seen.time;
}

// Processes that begin to share memory, or end to, are one job more or less; a thread is in one at a time.
void JobFinder::take_from_others(JobId job, ThreadId thread) {
  for (auto& [id, other] : jobs_) {
    if (id == job) continue;
    const auto at = std::ranges::lower_bound(other.members, thread, {}, &Member::thread);
    if (at != other.members.end() && at->thread == thread) other.members.erase(at);
  }
}

// Threads in slots have all of the CPU, and nothing has wanted it all the time meanwhile. Then they divide it among
// themselves. (What can be seen of the run queues then is of the moments between slots, in which threads that pass by
// are met far more often than they are there.)
bool JobFinder::only_jobs_use(int cpu) const {
  double used = 0;
  for (const auto& [id, job] : jobs_) {
    if (!job.running) continue;
    for (const Member& member : job.members) {
      if (member.cpu_number != cpu) continue;
      if (member.rivals) return false;
      used += member.cpu;
    }
  }
  return used >= config_.only_jobs;
}

// A thread that runs in slots weighs next to nothing between them, which is not what it is due: among threads of one
// run queue each is due by its nice value.
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
      const double own = member.weight;
      if (job.running && only_jobs_use(member.cpu_number))
        member.share = own / (own + hidden) / (1 + other_lowered(id, member.group, member.cpu_number));
      else if (hidden > 0 && member.share > 0)
        member.share = own / (own / member.share + hidden);  // own / share: (own + others) / upper
    }
  }
}

// Lowered groups of other jobs that have a thread on this CPU.
int JobFinder::other_lowered(JobId job, std::uint64_t group, int cpu) const {
  return static_cast<int>(std::ranges::count_if(jobs_, [&](const auto& one) {
    const auto& [id, other] = one;
    return id != job && other.running && other.lowers_group &&
           std::ranges::any_of(other.members, [&](const Member& m) { return m.cpu_number == cpu && m.group != group; });
  }));
}

// The thread's groups' due if none was lowered. In parts of what its own would weigh: `rest`, which is not
// lowered, and others that are. Lowered, upper = (1/L) / (1/L + rest + others/L); else upper = 1 / (1 + rest +
// others/L).
double JobFinder::own_upper(JobId id, const Job& job, const ThreadProfiled& seen) const {
  const int others = other_lowered(id, seen.group, seen.cpu_number);
  const bool lowered = job.running && job.lowers_group;
  if (!lowered && others == 0) return seen.upper;
  const double beside = 1 / std::clamp(seen.upper, 1e-4, 1.0) - 1;
  const double rest = std::max((lowered ? beside / lowered_by : beside) - others / lowered_by, 0.0);
  return 1 / (1 + rest + others);
}

void JobFinder::look_at_groups(JobId id, Job& job) {
  double others = 0, upper = 0;
  bool alone = true;
  int unmoved = 0;
  for (const Member& member : job.members) {
    others = std::max(others, member.group_others);
    upper += member.upper;
    alone = alone && other_lowered(id, member.group, member.cpu_number) == 0;
    if (member.raw_upper >= in_force_below && member.raw_upper < without_rivals) ++unmoved;
  }
  const auto threads = static_cast<double>(std::max<std::size_t>(job.members.size(), 1));
  job.group_others += (others - job.group_others) * lately;
  job.unmoved = alone && job.lowered_for > 0 && unmoved > 0 ? job.unmoved + 1 : 0;
  job.group_fixed = job.group_fixed || job.unmoved >= unmoved_windows;
  const bool was_lowered = job.lowers_group;
  job.apart = upper / threads < (job.apart ? config_.grouped_begin : config_.grouped_end);
  job.lowers_group = job.apart && !job.group_fixed && job.group_others <= config_.group_others;
  job.lowered_for = job.running && was_lowered && job.lowers_group ? job.lowered_for + 1 : 0;
}

void JobFinder::weigh(Job& job, int cpus, Time now) const {
  double used = 0, wasted = 0, due = 0, upper = 0;
  for (const Member& member : job.members) {
    const double mate = least_of_mates(job, member);
    used += member.cpu;
    wasted += member.cpu * member.waiting * (1 - mate);
    // A thread that only passes by in another group is no rival.
    due += job.apart ? member.share : std::min(member.share / std::max(member.group_part, 0.5), 1.0);
    upper += member.upper;
  }
  const auto threads = static_cast<double>(job.members.size());
  job.due = threads == 0 ? 1 : due / threads;
  if (!job.running) job.waste = used <= 0 ? 0 : wasted / used;
  const bool competes = job.due <= (job.running ? config_.quiet : config_.contended);
  // In slots it waits less, because its mates are met.
  job.polls = threads == 1 && competes && (job.running || job.members.front().polling >= config_.polls);
  const bool called = job.polls && now - job.members.front().called <= config_.called_lately;
  if ((threads < 2 && !called) || !competes)
    job.verdict = State::alone;
  else if (threads > cpus || !job.fits)
    job.verdict = State::crowded;
  else if (!job.lowers_group && upper / threads < (job.running ? config_.grouped_end : config_.grouped_begin))
    job.verdict = State::grouped;
  else if (job.waste < config_.waste && !job.declared && !called)
    job.verdict = State::useful;
  else
    job.verdict = State::wanted;
}

void JobFinder::look_at_turns(Job& job, Time now) const {
  double used = 0, spun = 0, for_mates = 0, due = 0;
  for (const Member& member : job.members) {
    const double mate = least_of_mates(job, member);
    used += member.cpu;
    due += member.share;
    spun += member.cpu * member.spinning;
    for_mates += member.cpu * member.spinning * (1 - mate);
  }
  std::erase_if(job.turn_cpus, [&](const auto& one) { return now - one.second > config_.turn_cpus; });
  if (used <= 0) return;
  // (Of what they had, the turns themselves have taken a part.)
  const bool alone = due >= config_.turns_alone * static_cast<double>(job.turn_cpus.size());
  const bool apart = job.verdict == State::crowded || job.verdict == State::grouped;
  const bool wanted = apart && (job.takes_turns || (for_mates >= config_.turns * used && !job.quantum.rests(now)));
  job.turned = wanted == job.takes_turns ? 0 : job.turned + 1;
  if (job.turned >= config_.windows) {
    job.takes_turns = wanted;
    job.turned = 0;
    if (wanted) job.quantum.begin(alone);
  } else if (job.takes_turns) {
    job.quantum.end_window(spun / used, alone, now);
    if (job.quantum.rests(now)) job.takes_turns = false;
  }
}

void JobFinder::end_turns() {
  for (auto& [id, job] : jobs_) job.takes_turns = false;
}

ShortTurns JobFinder::short_turns() const {
  ShortTurns out;
  for (const auto& [id, job] : jobs_) {
    if (!job.takes_turns || job.members.size() < 2) continue;
    for (const auto& [cpu, last] : job.turn_cpus) {
      const auto [at, is_new] = out.try_emplace(cpu, job.quantum.length());
      if (!is_new) at->second = std::min(at->second, job.quantum.length());
    }
  }
  return out;
}

void JobFinder::end_window(int cpus, Time now) {
  if (!fresh_) return;
  fresh_ = false;
  for (auto& [id, job] : jobs_)
    std::erase_if(job.members, [&](const Member& one) { return now - one.seen > config_.forget_after; });
  std::erase_if(jobs_, [](const auto& one) { return one.second.members.empty() && !one.second.running; });
  correct_shares();
  for (auto& [id, job] : jobs_) {
    if (job.heard) look_at_groups(id, job);
    weigh(job, cpus, now);
    if (job.heard) look_at_turns(job, now);
    if (job.takes_turns) job.verdict = State::round_robin;
    // A window that says nothing of it is none of its windows in a row.
    if (!std::exchange(job.heard, false) && !job.members.empty()) continue;
    if (job.verdict == State::wanted) {
      ++job.for_;
      job.against = 0;
    } else {
      ++job.against;
      job.for_ = 0;
    }
  }
}

void JobFinder::called(ThreadId thread, Time now) {
  for (auto& [id, job] : jobs_)
    for (Member& member : job.members)
      if (member.thread == thread) member.called = now;
}

void JobFinder::set_running(JobId id, bool running) {
  const auto at = jobs_.find(id);
  if (at != jobs_.end()) at->second.running = running;
}

void JobFinder::forget(ThreadId thread) {
  for (auto& [id, job] : jobs_) std::erase_if(job.members, [&](const Member& one) { return one.thread == thread; });
}

}  // namespace swapd::decide
