// The engine's commands and snapshots: what the control thread asks for through Engine::call().
#include <algorithm>

#include "engine/base_priority.h"
#include "engine/engine.h"

namespace swapd::daemon {

void Engine::add_listener(std::shared_ptr<observe::Receiver> receiver, pid_t pid, const std::string& class_name,
                          bool io, Time now) {
  // The processes that it has made so far have no filter, and are not managed.
  take_proc_events(now);
  const observe::Receiver* listener = receiver.get();
  adopt_listener(std::move(receiver), pid);
  listeners_.bind(pid, listener);
  if (io) listeners_.traps_io(listener);
  tracker_->enroll_launched(pid, class_name, now);
  if (listeners_.size() == 1) pacer_.tick_soon(now);
}

void Engine::adopt_listener(std::shared_ptr<observe::Receiver> receiver, pid_t launch) {
  if (seccomp_ != nullptr)
    seccomp_->add(receiver);
  else
    receiver->keep_to_itself();
  listeners_.add(std::move(receiver), launch);
}

void Engine::remove_listener(const observe::Receiver* receiver) {
  if (seccomp_ != nullptr) seccomp_->remove(receiver);
  listeners_.remove(receiver);
}

void Engine::catch_up() {
  const Time now = kernel_.clock.now();
  take_proc_events(now);
  round(now);
}

Result<std::size_t> Engine::enroll_threads(const std::vector<RosterAnswer::Entry>& threads,
                                           const std::string& class_name) {
  const Time now = kernel_.clock.now();
  if (members_.empty()) pacer_.tick_soon(now);
  return tracker_->enroll_threads(threads, class_name, now);
}

Result<std::size_t> Engine::reenroll(const std::vector<RosterAnswer::Entry>& threads, const model::Membership& as) {
  const Time now = kernel_.clock.now();
  if (members_.empty()) pacer_.tick_soon(now);
  return tracker_->reenroll(threads, as, now);
}

Status Engine::manage_again(pid_t pid, const std::string& class_name) {
  const Time now = kernel_.clock.now();
  take_proc_events(now);
  return tracker_->manage_again(pid, class_name, now);
}

void Engine::move_class(const std::string& from, const std::string& to) {
  const Time now = kernel_.clock.now();
  take_proc_events(now);
  tracker_->move_class(from, to, now);
}

Status Engine::set_base(pid_t pid, const AskedPriority& asked, bool may_raise) {
  std::vector<BasePriority::Changed> changed;
  Status set = BasePriority(members_, kernel_.scheduler, actuator_, options_.actuate.dry_run)
                   .set(pid, asked, may_raise, changed);
  const Time now = kernel_.clock.now();
  for (const auto& [thread, base] : changed) tracker_->set_base(thread, base, now);
  return set;
}

void Engine::record_from_here() {
  auto opening = decisions_->opening(kernel_.clock.now());
  opening->donation = options_.donation;
  records_.open(std::move(opening));
}

void Engine::pause(bool paused) {
  decisions_->pause(paused);
  decisions_->run(kernel_.clock.now());
}

Snapshot Engine::snapshot() const {
  Snapshot out;
  out.time = kernel_.clock.now();
  for (const auto& [tid, member] : members_.threads()) {
    const model::ManagedProcess* process = members_.process(member.tgid);
    if (process == nullptr || !process->managed) continue;
    SnapshotThread thread{.id = member.id, .tgid = member.tgid, .base = member.base, .class_name = process->class_name};
    if (const auto base = actuator_.base(member.id)) thread.base = *base;
    thread.weight = member.weight;
    thread.importance = options_.donation.rules.importance(thread.base, member.weight, process->class_id);
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

Counters Engine::counters() {
  keep_to_budget(kernel_.clock.now());  // without managed threads there are no ticks
  const ListenerTable::Totals receivers = listeners_.totals();
  Counters out;
  out.managed_threads = members_.managed_threads();
  out.managed_processes = members_.managed_processes();
  out.listeners = listeners_.size();
  out.donations_active = actuator_.active().size();
  out.donations_total = actuator_.total();
  out.notifications = receivers.received;
  out.events_lost = tracker_->counts().lost + feed_.lost() + receivers.lost;
  out.over_quota = tracker_->counts().over_quota;
  out.trouble = trouble_;
  out.paused = decisions_->paused();
  out.cpu = OwnCpu::times(worker_.cpu_time(), receivers.cpu);
  out.budget = own_cpu_.budget();
  out.costs = observer_->costs();
  out.model = model_.counts();
  return out;
}

}  // namespace swapd::daemon
