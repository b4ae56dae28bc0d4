#include "decide/memory/memory_decider.h"

#include <algorithm>
#include <utility>

#include "decide/state.h"
#include "model/model.h"

namespace swapd::decide {

namespace {

constexpr Duration refused_for = std::chrono::minutes(1);
constexpr Duration asked_for = std::chrono::minutes(10);  // that one which a person wanted back stays
constexpr Duration split_for = std::chrono::minutes(1);   // at least

// A process of a group is also one of those above it; the machine's has no name.
bool is_in(const std::string& group, const std::string& of) {
  return of.empty() || group == of || (group.starts_with(of) && group[of.size()] == '/');
}

// While pages are short, threads wait for each other inside the kernel all the time, in page faults and for files: for
// what a thread does that is not frozen before it has done it. (A FUSE daemon is a program.)
bool waits_for_a_program(const model::ThreadView& view, Time now) {
  constexpr Duration inside = std::chrono::seconds(1);  // a wait that is no longer
  const auto is_inside = [](const Resource& one) {
    return one.kind == ResourceKind::unknown || (one.kind == ResourceKind::kernel && !is_fuse_files(one));
  };
  return view.state == model::RunState::blocked &&
         (now - view.since >= inside || !std::ranges::all_of(view.awaited, is_inside));
}

}  // namespace

MemoryJob::Id MemoryDecider::job_of(const ProcessMemory& seen) const {
  constexpr JobId own = 1ULL << 32;  // no process group has such an id
  return split_.contains(seen.job) ? own | static_cast<JobId>(seen.tgid) : seen.job;
}

void MemoryDecider::after(const Event& event, const model::Model& /*model*/) {
  if (!config_.on) return;
  if (const auto* enrolled = std::get_if<Enrolled>(&event)) {
    Thread& thread = threads_[enrolled->thread];
    thread.tgid = enrolled->tgid;
    thread.base = enrolled->base;
    thread.class_id = enrolled->class_id;
  } else if (const auto* ranked = std::get_if<Ranked>(&event)) {
    if (const auto at = threads_.find(ranked->thread); at != threads_.end()) at->second.counts_as = ranked->counts_as;
  }
  const bool tells_of_waits = std::holds_alternative<Blocked>(event) || std::holds_alternative<Holders>(event) ||
                              std::holds_alternative<Ranked>(event);
  waits_changed_ = waits_changed_ || (tells_of_waits && !away_.empty());
}

void MemoryDecider::forget(ThreadId thread) {
  const auto at = threads_.find(thread);
  if (at == threads_.end()) return;
  const pid_t tgid = at->second.tgid;
  threads_.erase(at);
  if (std::ranges::any_of(threads_, [&](const auto& one) { return one.second.tgid == tgid; })) return;
  const auto process = processes_.find(tgid);
  if (process == processes_.end()) return;
  const JobId job = job_of(process->second.seen);
  processes_.erase(process);
  if (!away_.contains(job)) return;
  changed_ = true;
  if (std::ranges::none_of(processes_, [&](const auto& one) { return job_of(one.second.seen) == job; }))
    away_.erase(job);
}

void MemoryDecider::on(const Input& input) {
  if (const auto* fared = std::get_if<MemoryFared>(&input))
    take(*fared);
  else if (const auto* seen = std::get_if<ProcessMemory>(&input))
    processes_[seen->tgid].seen = *seen;
  else if (const auto* event = std::get_if<MemoryEvent>(&input))
    take(*event);
}

void MemoryDecider::take(const MemoryFared& fared) {
  Group& group = groups_[fared.group];
  group.thrashing.window({.length = fared.window,
                          .refaults = fared.refaults,
                          .in = fared.in,
                          .out = fared.out,
                          .page_cost = fared.page_cost});
  group.room = fared.room;
  group.swap_room = fared.swap_room;
  group.seen_at = fared.time;
  group.fresh = true;
}

void MemoryDecider::take(const MemoryEvent& event) {
  if (event.what == MemoryEvent::What::input)
    events_.push_back(event.tgid);
  else if (const auto at = processes_.find(event.tgid); at != processes_.end())
    at->second.stays_until = event.time + (event.what == MemoryEvent::What::asked ? asked_for : refused_for);
  stays_changed_ = stays_changed_ || event.what != MemoryEvent::What::input;
}

// The processes for which a thread waits that matters more than the least.
std::vector<pid_t> MemoryDecider::waited_for(const model::Model& model, Time now) const {
  int least = INT32_MAX;
  for (const auto& [id, thread] : threads_) least = std::min(least, thread.rank());
  std::vector<ThreadId> requesters;
  for (const auto& [id, thread] : threads_) {
    if (thread.rank() <= least) continue;
    const auto view = model.thread(id);
    if (view && waits_for_a_program(*view, now)) requesters.push_back(id);
  }
  std::vector<pid_t> found;
  for (const model::Model::TreeThread& one : model.wait_trees(requesters))
    if (const auto at = threads_.find(one.thread); at != threads_.end()) found.push_back(at->second.tgid);
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

MemoryDecider::Jobs MemoryDecider::jobs_of(const std::string& group, std::span<const pid_t> wanted,
                                           const model::Model& model, Time now) const {
  struct Threads {
    int rank = 0;
    bool waits = true, stays = false;
    Time since{};
  };
  std::map<pid_t, Threads> by_process;
  for (const auto& [id, thread] : threads_) {
    Threads& all = by_process[thread.tgid];
    all.rank = std::max(all.rank, thread.rank());
    all.stays = all.stays || (thread.class_id < config_.stay.size() && config_.stay[thread.class_id]);
    const auto view = model.thread(id);
    all.waits = all.waits && view && view->state == model::RunState::blocked;
    if (view) all.since = std::max(all.since, view->since);
  }
  Jobs jobs;
  for (const auto& [tgid, process] : processes_) {
    if (!is_in(process.seen.group, group) || !by_process.contains(tgid)) continue;
    const Threads& threads = by_process[tgid];
    const JobId id = job_of(process.seen);
    const auto [at, is_new] = jobs.try_emplace(id);
    MemoryJob& job = at->second;
    job.id = id;
    job.rank = std::max(job.rank, threads.rank);
    job.waits = (is_new || job.waits) && threads.waits;
    job.since = std::max(job.since, threads.waits ? threads.since : Time{});
    job.needed = job.needed || process.seen.needed || threads.stays || process.stays_until > now ||
                 std::ranges::binary_search(wanted, tgid);
    job.resident += process.seen.resident;
    job.swapped += process.seen.swapped;
  }
  for (auto& [id, job] : jobs) {
    const auto back = came_back_.find(id);
    if (back == came_back_.end()) continue;
    if (!job.waits) job.since = std::max(job.since, back->second);
    if (now - back->second >= config_.stays) continue;
    job.needed = true;
    job.waits = false;  // all its pages are brought back, whatever it does
  }
  return jobs;
}

void MemoryDecider::leaves(const std::string& name, const MemoryJob& job, Time now) {
  away_[job.id] = {.group = name, .rank = job.rank, .since = now};
  came_back_.erase(job.id);
  changed_ = true;
}

void MemoryDecider::comes_back(JobId job, Time now) {
  if (away_.erase(job) == 0) return;
  came_back_[job] = now;
  changed_ = true;
}

std::vector<MemoryJob> MemoryDecider::there(const Jobs& jobs) const {
  std::vector<MemoryJob> out;
  for (const auto& [id, job] : jobs)
    if (!away_.contains(id)) out.push_back(job);
  return out;
}

// The jobs of the group with several processes of which none is away. False: there is none.
bool MemoryDecider::split(const std::string& name, Time now) {
  std::map<JobId, int> processes;
  for (const auto& [tgid, process] : processes_)
    if (is_in(process.seen.group, name) && !split_.contains(process.seen.job)) ++processes[process.seen.job];
  std::erase_if(processes, [&](const auto& one) { return one.second < 2 || away_.contains(one.first); });
  for (const auto& [job, count] : processes) split_[job] = now;
  return !processes.empty();
}

void MemoryDecider::put_away(const std::string& name, Group& group, Jobs jobs, const std::function<Jobs()>& again,
                             Time now) {
  group.stuck = Why::none;
  if (all_fit(there(jobs), group.room)) return;  // a group within it thrashes
  std::vector<JobId> chosen = choose_victims(there(jobs), group.room, group.swap_room);
  if (chosen.empty() && split(name, now)) {
    jobs = again();
    chosen = choose_victims(there(jobs), group.room, group.swap_room);
  }
  group.stuck = chosen.empty() ? Why::no_set_frees_enough : Why::none;
  if (chosen.empty()) return;
  for (const JobId id : chosen) leaves(name, jobs.at(id), now);
  group.changes(now);
}

// The best of those that are away, and of these the one that has been away longest, come back where there is room for
// them; or that one in the place of one that matters no more and has had its turn.
void MemoryDecider::bring_back(const std::string& name, Group& group, const Jobs& jobs, Time now) {
  group.stuck = Why::none;
  std::vector<const MemoryJob*> out;
  const auto since = [&](const MemoryJob& job) { return away_.at(job.id).since; };
  const MemoryJob* next = nullptr;
  for (const auto& [id, job] : jobs) {
    const auto at = away_.find(id);
    if (at == away_.end()) {
      const auto back = came_back_.find(id);
      const bool had_its_turn = back == came_back_.end() || now - back->second >= config_.quantum;
      if (!job.needed && had_its_turn && (next == nullptr || goes_before(job, *next))) next = &job;
    } else if (at->second.group == name) {
      out.push_back(&job);
    }
  }
  if (out.empty()) return;
  std::ranges::stable_sort(out, [&](const MemoryJob* one, const MemoryJob* other) {
    return one->rank != other->rank ? one->rank > other->rank : since(*one) < since(*other);
  });
  std::int64_t wanted = 0;
  for (const MemoryJob* job : out) {
    wanted += job->swapped;
    if (!group.thrashing.calm() || group.room < with_margin(wanted)) break;
    comes_back(job->id, now);
  }
  const MemoryJob& best = *out.front();
  if (!away_.contains(best.id)) return group.changes(now);
  const bool in_turn =
      next != nullptr && (next->rank < best.rank || (next->rank == best.rank && now - since(best) >= config_.quantum));
  if (!in_turn || group.room + next->resident < with_margin(best.swapped)) return;
  const JobId returns = best.id;
  leaves(name, *next, now);
  comes_back(returns, now);
  group.changes(now);
}

// Appends the groups that become fuller by it.
void MemoryDecider::recall(std::span<const pid_t> pids, Time now, std::vector<std::string>& fuller) {
  for (const pid_t tgid : pids) {
    const auto at = processes_.find(tgid);
    if (at == processes_.end()) continue;
    const JobId job = job_of(at->second.seen);
    const auto out = away_.find(job);
    if (out == away_.end()) continue;
    groups_[out->second.group].changes(now);
    fuller.push_back(out->second.group);
    comes_back(job, now);
  }
}

// A group of which nothing is told any more keeps no job away.
void MemoryDecider::forget_old(Time now) {
  std::erase_if(groups_, [&](const auto& one) { return now - one.second.seen_at > config_.unknown_after; });
  std::vector<JobId> back;
  for (const auto& [id, out] : away_)
    if (!groups_.contains(out.group)) back.push_back(id);
  for (const JobId id : back) comes_back(id, now);
  std::erase_if(processes_, [&](const auto& one) {
    return now - one.second.seen.time > config_.unknown_after && !away_.contains(job_of(one.second.seen));
  });
  std::erase_if(split_, [&](const auto& one) {
    return now - one.second > split_for && std::ranges::none_of(processes_, [&](const auto& process) {
             return process.second.seen.job == one.first && away_.contains(job_of(process.second.seen));
           });
  });
  std::erase_if(came_back_, [&](const auto& one) { return now - one.second > std::chrono::minutes(10); });
}

void MemoryDecider::demand(Plan& plan) const {
  for (const auto& [tgid, process] : processes_) {
    const auto out = away_.find(job_of(process.seen));
    if (out != away_.end() && is_in(process.seen.group, out->second.group))
      plan.demands.emplace_back(PutAway{.tgid = tgid, .job = process.seen.job});
  }
}

void MemoryDecider::decide(const model::Model& model, const Turn& turn, Plan& plan) {
  const bool any_fresh = std::ranges::any_of(groups_, [](const auto& one) { return one.second.fresh; });
  if (!any_fresh && events_.empty() && !waits_changed_ && !stays_changed_ && !changed_) {
    plan.keeps_demands = true;
    return;
  }
  forget_old(turn.now);
  std::vector<std::string> fuller;
  recall(std::exchange(events_, {}), turn.now, fuller);
  if (std::exchange(stays_changed_, false)) {
    std::vector<pid_t> back;
    for (const auto& [tgid, process] : processes_)
      if (process.stays_until > turn.now) back.push_back(tgid);
    recall(back, turn.now, fuller);
  }
  waits_changed_ = false;
  const bool busy = !away_.empty() || !fuller.empty() ||
                    std::ranges::any_of(groups_, [](const auto& one) { return one.second.thrashing.there(); });
  if (busy) {
    const std::vector<pid_t> wanted = waited_for(model, turn.now);
    recall(wanted, turn.now, fuller);
    for (auto& [name, group] : groups_) {
      const bool is_fuller = std::ranges::find(fuller, name) != fuller.end();
      const bool is_settled = turn.now - group.changed_at >= config_.settles;
      if (!is_fuller && (!std::exchange(group.fresh, false) || !is_settled)) continue;
      const auto jobs = [&, &name = name] { return jobs_of(name, wanted, model, turn.now); };
      if (is_fuller || group.thrashing.there())
        put_away(name, group, jobs(), jobs, turn.now);
      else
        bring_back(name, group, jobs(), turn.now);
    }
  }
  for (auto& [name, group] : groups_) group.fresh = false;
  if (std::exchange(changed_, false))
    demand(plan);
  else
    plan.keeps_demands = true;
}

std::vector<MemoryDecider::GroupView> MemoryDecider::groups() const {
  std::vector<GroupView> out;
  for (const auto& [name, group] : groups_)
    out.push_back(
        {.group = name, .thrashes = group.thrashing.there(), .lost = group.thrashing.lost(), .stuck = group.stuck});
  return out;
}

std::vector<MemoryDecider::AwayView> MemoryDecider::away() const {
  std::vector<AwayView> out;
  for (const auto& [tgid, process] : processes_)
    if (const auto at = away_.find(job_of(process.seen));
        at != away_.end() && is_in(process.seen.group, at->second.group))
      out.push_back({.tgid = tgid, .job = process.seen.job, .group = at->second.group, .since = at->second.since});
  return out;
}

void MemoryDecider::save(StateWriter& out) const {
  out(groups_, processes_, threads_, away_, came_back_, events_, stays_changed_, waits_changed_, changed_, split_);
}

void MemoryDecider::restore(StateReader& in) {
  in(groups_, processes_, threads_, away_, came_back_, events_, stays_changed_, waits_changed_, changed_, split_);
  changed_ = true;
}

}  // namespace swapd::decide
