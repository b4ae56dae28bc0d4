// The engine's commands, snapshots and notes: what the control thread asks for through Engine::call().
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "engine/engine.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {

namespace {
constexpr std::size_t max_released = 4096;
}  // namespace

void Engine::add_listener(std::shared_ptr<observe::Receiver> receiver, pid_t pid, const std::string& class_name,
                          bool io, Time now) {
  // What it has made so far has no filter, and is not in.
  take_proc_events(now);
  const auto leader = procfs_.thread_id(pid);
  const auto uid = procfs_.uid(pid);
  listener_of_[pid] = receiver.get();
  if (io) io_receivers_.insert(receiver.get());
  adopt_listener(std::move(receiver), pid);
  if (!leader || !uid) return;  // gone already: the listener hangs up
  members_.add_process(pid, leader->start_time, *uid, class_name).launch = pid;
  if (const auto attr = scheduler_.get(pid)) (void)enroll(*leader, pid, *attr, *uid, now);
  if (receivers_.size() == 1) next_tick_ = now;
}

void Engine::adopt_listener(std::shared_ptr<observe::Receiver> receiver, pid_t launch) {
  if (seccomp_ != nullptr)
    seccomp_->add(receiver);
  else
    receiver->keep_to_itself();
  receiver->set_urgent(urgent_);
  launch_of_[receiver.get()] = launch;
  receivers_.push_back(std::move(receiver));
}

void Engine::catch_up() {
  const Time now = clock_.now();
  take_proc_events(now);
  drain_all(now);
}

bool Engine::has_io(pid_t tgid) const {
  const auto listener = listener_of_.find(tgid);
  return listener != listener_of_.end() && io_receivers_.contains(listener->second);
}

void Engine::move_class(const std::string& from, const std::string& to) {
  std::vector<pid_t> pids;
  for (const auto& [pid, process] : members_.processes())
    if (process.class_name == from) pids.push_back(pid);
  for (const pid_t pid : pids) {
    const bool managed = members_.process(pid)->managed;
    if (managed) (void)manage_again(pid, to);
  }
}

std::vector<model::Membership> Engine::memberships() const {
  std::vector<model::Membership> out;
  for (const auto& [pid, process] : members_.processes()) {
    if (process.kernel) continue;
    out.push_back({pid, process.start_time, process.class_name, process.managed, process.launch, has_io(pid)});
  }
  for (const auto& [pid, start_time] : released_)
    if (members_.process(pid) == nullptr) out.push_back({pid, start_time, "default", false, 0});
  return out;
}

Result<std::size_t> Engine::reenroll(const std::vector<RosterAnswer::Entry>& threads, const model::Membership& as) {
  const auto listener =
      std::ranges::find_if(launch_of_, [&](const auto& l) { return as.launch != 0 && l.second == as.launch; });
  if (needs_listeners() && listener == launch_of_.end())
    return Error(ENOENT, "process " + std::to_string(as.pid) + ": its listener is lost");
  if (listener != launch_of_.end())
    for (const RosterAnswer::Entry& e : threads) listener_of_[e.tgid] = listener->first;
  if (listener != launch_of_.end() && as.io) io_receivers_.insert(listener->first);
  auto taken = enroll_threads(threads, as.class_name);
  for (const RosterAnswer::Entry& e : threads) {
    if (members_.process(e.tgid) == nullptr) {
      listener_of_.erase(e.tgid);
      continue;
    }
    members_.set_launch(e.tgid, as.launch);
    if (!as.managed) (void)release(e.tgid);
  }
  return taken;
}

void Engine::remove_listener(const observe::Receiver* receiver) {
  if (seccomp_ != nullptr) seccomp_->remove(receiver);
  following_.erase(receiver);
  launch_of_.erase(receiver);
  io_receivers_.erase(receiver);
  std::erase_if(listener_of_, [&](const auto& l) { return l.second == receiver; });
  std::erase_if(receivers_, [&](const auto& r) {
    if (r.get() != receiver) return false;
    notifications_gone_ += r->received();
    lost_.fetch_add(r->lost(), std::memory_order_relaxed);
    return true;
  });
}

Status Engine::manage_again(pid_t pid, const std::string& class_name) {
  const Time now = clock_.now();
  take_proc_events(now);
  const model::ManagedProcess* process = members_.process(pid);
  if (process == nullptr) return Error(ENOENT, "not in a managed tree");
  if (!process->managed && noted(Notes::decisions))
    note({.type = Note::Type::enrolled,
          .time = now,
          .thread = {pid, process->start_time},
          .tgid = pid,
          .process = true});
  model::ManagedProcess& again = members_.add_process(pid, process->start_time, process->uid, class_name);
  members_.set_managed(pid, true);
  for (const pid_t tid : std::vector(again.threads)) {
    const model::ManagedThread* member = members_.thread(tid);
    const auto attr = scheduler_.get(tid);
    if (attr) (void)enroll(member->id, pid, actuator_.base(member->id).value_or(*attr), again.uid, now);
  }
  return Done{};
}

bool Engine::knows(pid_t pid, std::uint64_t start_time) const {
  if (const model::ManagedProcess* process = members_.process(pid)) return process->start_time == start_time;
  const auto released = released_.find(pid);
  return released != released_.end() && released->second == start_time;
}

void Engine::remember_released(pid_t pid, std::uint64_t start_time) {
  if (released_.size() >= max_released) released_.clear();
  released_[pid] = start_time;
}

void Engine::record_from_here() {
  auto opening = decisions_->opening(clock_.now());
  opening->donation = options_.donation;
  records_.open(std::move(opening));
}

void Engine::pause(bool paused) {
  decisions_->pause(paused);
  decisions_->run(clock_.now());
}

Status Engine::release(pid_t pid) {
  const model::ManagedThread* thread = members_.thread(pid);
  const pid_t tgid = thread == nullptr ? pid : thread->tgid;
  const model::ManagedProcess* process = members_.process(tgid);
  if (process == nullptr || !process->managed)
    return Error(ENOENT, "process " + std::to_string(pid) + " is not managed");
  members_.set_managed(tgid, false);
  if (!needs_listeners()) remember_released(tgid, process->start_time);
  const Time now = clock_.now();
  shaper_.release(tgid, process->start_time);
  const ThreadId leader{tgid, process->start_time};
  for (const pid_t tid : std::vector(process->threads)) {
    const ThreadId id = members_.thread(tid)->id;
    decisions_->take(Exited{.time = now, .thread = id});  // to the model it is gone
    observer_->release(id);
    decisions_->forget(id, false);
    if (!needs_listeners()) members_.remove_thread(tid);  // nothing of it stays; a filter would
  }
  if (noted(Notes::decisions))
    note({.type = Note::Type::unenrolled, .time = now, .thread = leader, .tgid = tgid, .process = true});
  return Done{};
}

// Above what it has of its own, whatever it is lent. A nice value that a real-time or idle thread keeps for later
// counts, too.
bool Engine::raises(const AskedPriority& asked, pid_t tid, const SchedAttr& own) const {
  if (asked.attr.realtime()) return true;
  if (!asked.nice_alone) return rank(asked.attr) > rank(own);
  const auto nice = own.realtime() ? scheduler_.nice(tid) : Result<int>(own.nice);
  return nice && asked.attr.nice < *nice;
}

// A nice value alone is given as by renice(1). Under a real-time loan a real-time thread's own is the kernel's to keep.
Status Engine::set_base(const model::ManagedThread& member, const AskedPriority& asked, const SchedAttr& base) {
  const pid_t tid = member.id.tid;
  const bool lent_to = actuator_.base(member.id).has_value();
  if (lent_to && !(asked.nice_alone && base.realtime())) return actuator_.set_base(member.id, base);
  return asked.nice_alone ? scheduler_.set_nice(tid, asked.attr.nice) : scheduler_.set(tid, base);
}

Status Engine::set_base(pid_t pid, const AskedPriority& asked, bool may_raise) {
  std::vector<pid_t> tids;
  if (const model::ManagedProcess* process = members_.process(pid))
    tids = process->threads;
  else if (members_.thread(pid) != nullptr)
    tids = {pid};
  if (tids.empty() || !identify(tids.front()))
    return Error(ENOENT, "process " + std::to_string(pid) + " is not managed");
  std::vector<SchedAttr> own;  // of each
  for (const pid_t tid : tids) {
    const model::ManagedThread* member = members_.thread(tid);
    const auto lent_to = actuator_.base(member->id);
    const auto seen = lent_to ? Result<SchedAttr>(*lent_to) : scheduler_.get(tid);
    own.push_back(seen ? *seen : member->base);
    if (!may_raise && raises(asked, tid, own.back()))
      return Error(EACCES, "only root may raise a priority through swapd");
  }
  if (options_.actuate.dry_run) return Error(EPERM, "this swapd only decides (--dry-run), and changes no priority");
  const Time now = clock_.now();
  for (std::size_t i = 0; i < tids.size(); ++i) {
    const model::ManagedThread member = *members_.thread(tids[i]);
    const SchedAttr base = asked.over(own[i]);
    const Status set = set_base(member, asked, base);
    if (!set && set.error().gone()) continue;
    if (!set) return set;
    (void)enroll(member.id, member.tgid, base, members_.process(member.tgid)->uid, now);
  }
  return Done{};
}

Snapshot Engine::snapshot() const {
  Snapshot out;
  out.time = clock_.now();
  for (const auto& [tid, member] : members_.threads()) {
    const model::ManagedProcess* process = members_.process(member.tgid);
    if (process == nullptr || !process->managed) continue;
    SnapshotThread thread{.id = member.id, .tgid = member.tgid, .base = member.base, .class_name = process->class_name};
    if (const auto base = actuator_.base(member.id)) thread.base = *base;
    thread.watched = decisions_->watches(member.id);
    if (const auto view = model_.thread(member.id); view && thread.watched) {
      thread.state = view->state;
      thread.since = view->since;
      thread.call = view->call;
      thread.awaited.assign(view->awaited.begin(), view->awaited.end());
      for (const Resource& resource : thread.awaited) out.providers[resource] = model_.providers(resource, member.id);
    }
    out.threads.emplace(member.id, std::move(thread));
  }
  model_.for_each_resource([&](const Resource& resource) {
    if (!out.providers.contains(resource)) out.providers[resource] = model_.providers(resource, std::nullopt);
  });
  out.unenrolled = decisions_->unenrolled();
  for (const auto& [resource, strangers] : out.unenrolled)
    for (const ThreadId stranger : strangers)
      if (observer_->relays(stranger)) out.relays.insert(stranger);
  out.donations = donation_->donations();
  out.boosts = actuator_.active();
  return out;
}

Counters Engine::counters() const {
  Counters out;
  out.managed_threads = members_.managed_threads();
  out.managed_processes = members_.managed_processes();
  out.listeners = receivers_.size();
  out.donations_active = actuator_.active().size();
  out.donations_total = actuator_.total();
  out.notifications = notifications_gone_;
  out.events_lost = lost_.load(std::memory_order_relaxed);
  out.over_quota = over_quota_;
  out.trouble = trouble_;
  out.paused = decisions_->paused();
  for (const auto& receiver : receivers_) {
    out.notifications += receiver->received();
    out.events_lost += receiver->lost();
    out.receivers_cpu_s += std::chrono::duration<double>(sys::own_thread_cpu_time(receiver->tid())).count();
  }
  out.engine_cpu_s = std::chrono::duration<double>(sys::own_cpu_time()).count();
  out.costs = observer_->costs();
  out.model = model_.counts();
  return out;
}

std::vector<Note> Engine::take_notes() {
  std::uint64_t count = 0;
  (void)!::read(notes_fd_.get(), &count, sizeof count);
  return notes_.take();
}

void Engine::note(Note note) {
  if (!notes_.push(std::move(note))) lost_.fetch_add(1, std::memory_order_relaxed);
}

// Whoever is found for somebody now, and was not at the last look.
void Engine::note_inversions() {
  std::unordered_set<Pair, HashPair> helped;
  for (const decide::Donation& donation : donation_->donations()) {
    if (donation.path.empty()) continue;
    const ThreadId provider = donation.path.back();
    helped.emplace(donation.requester, provider);
    if (helped_.contains({donation.requester, provider})) continue;
    const Time now = clock_.now();
    if (!followed_.tell({.first = donation.requester, .second = provider}, now)) continue;
    Note out{.type = Note::Type::inversion_found,
             .time = now,
             .thread = provider,
             .other = donation.requester,
             .resource = donation.resource,
             .has_resource = true,
             .attr = donation.attr};
    if (const model::ManagedThread* member = members_.thread(provider)) out.tgid = member->tgid;
    if (const model::ManagedThread* member = members_.thread(donation.requester)) out.other_tgid = member->tgid;
    note(std::move(out));
  }
  helped_ = std::move(helped);
}

void Engine::note_event(const Event& event) {
  const bool decision = std::holds_alternative<Enrolled>(event) || std::holds_alternative<Exited>(event);
  if (!decision && !noted(Notes::all)) return;
  const bool process = whole_process_;
  Note out;
  std::visit(
      [&](const auto& e) {
        using T = std::decay_t<decltype(e)>;
        out.time = e.time;
        if constexpr (!std::is_same_v<T, Holders> && !std::is_same_v<T, QuantumUsed>) {
          out.thread = e.thread;
          if (const model::ManagedThread* member = members_.thread(e.thread)) out.tgid = member->tgid;
        }
        const auto with = [&](const Resource& resource) {
          out.resource = resource;
          out.has_resource = true;
        };
        if constexpr (std::is_same_v<T, Enrolled>) {
          out.type = Note::Type::enrolled;
          out.attr = e.base;
        } else if constexpr (std::is_same_v<T, Accessed>) {
          out.type = Note::Type::accessed;
          with(e.resource);
        } else if constexpr (std::is_same_v<T, Released>) {
          out.type = Note::Type::released;
          with(e.resource);
        } else if constexpr (std::is_same_v<T, Blocked>) {
          out.type = Note::Type::blocked;
          if (!e.awaited.empty()) with(e.awaited.front());
        } else if constexpr (std::is_same_v<T, Woken>) {
          out.type = Note::Type::woken;
          if (e.by) out.other = *e.by;
          if (e.through) with(*e.through);
        } else if constexpr (std::is_same_v<T, Execed>) {
          out.type = Note::Type::execed;
        } else if constexpr (std::is_same_v<T, Exited>) {
          out.type = Note::Type::exited;
        }
      },
      event);
  out.process = process;
  if (out.thread.valid()) note(std::move(out));
}

void Engine::note_outcome(const actuate::Outcome& outcome) {
  // Also where the loan does nothing for its CPU time.
  using What = actuate::Outcome::What;
  if (outcome.what == What::begun || outcome.what == What::changed || outcome.what == What::ineffective)
    shaper_.favour(outcome.boost.thread.tid, true);
  if (outcome.what == What::ended) shaper_.favour(outcome.boost.thread.tid, false);
  const bool followed = noted(Notes::decisions);
  const bool journal = journal_wanted_.load(std::memory_order_relaxed);
  if (!followed && !journal) return;
  Note out{.time = clock_.now(),
           .thread = outcome.boost.thread,
           .other = outcome.boost.requester,
           .resource = outcome.boost.resource,
           .has_resource = true,
           .attr = outcome.lent,
           .reason = outcome.reason,
           .limited = outcome.limited};
  if (const model::ManagedThread* member = members_.thread(outcome.boost.thread)) out.tgid = member->tgid;
  switch (outcome.what) {
    case What::begun:
      out.type = Note::Type::donation_begun;
      break;
    case What::ended:
      out.type = Note::Type::donation_ended;
      break;
    case What::ineffective:
      if (outcome.reason == actuate::Ineffective::ceiling || outcome.reason == actuate::Ineffective::quota) {
        // A rest, ten times a second.
        const RateLimiter::Key key{.first = out.thread,
                                   .what = outcome.reason == actuate::Ineffective::quota ? 1U : 0U};
        if (!followed || !followed_.tell(key, out.time)) return;
        out.type = Note::Type::limit_reached;
        out.limit = actuate::name(outcome.reason);
        note(std::move(out));
        return;
      }
      if (outcome.reason == actuate::Ineffective::no_progress &&
          !(followed && followed_.tell({.first = out.thread, .what = 2U}, out.time)))
        return;  // it comes and goes
      out.type = Note::Type::ineffective;
      break;
    case What::failed:
      out.type = Note::Type::ineffective;
      break;
    case What::changed:
    case What::rebased:
      return;
  }
  if (journal && out.type != Note::Type::donation_ended)
    out.journalled = journalled_.tell({out.other, out.thread, out.type == Note::Type::ineffective ? 1U : 0U}, out.time);
  if (const model::ManagedThread* member = members_.thread(out.other)) out.other_tgid = member->tgid;
  if (out.journalled && !journal_room_.take(out.time)) out.journalled.reset();
  if (followed || out.journalled) note(std::move(out));
}

}  // namespace swapd::daemon
