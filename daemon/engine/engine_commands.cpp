// The engine's commands and snapshots: what the control thread asks for through Engine::call().
#include "engine/engine.h"

namespace swapd::daemon {

void Engine::catch_up() { round(kernel_.clock.now()); }

void Engine::record_from_here() {
  auto opening = decisions_.opening(kernel_.clock.now());
  opening->donation = options_.donation;
  opening->coscheduling = options_.coscheduling;
  opening->levels = options_.levels;
  opening->memory = options_.memory;
  records_.open(std::move(opening));
}

void Engine::pause(bool paused) {
  decisions_.pause(paused);
  decisions_.run(kernel_.clock.now());
}

Snapshot Engine::snapshot() {
  Snapshot out;
  out.time = kernel_.clock.now();
  std::vector<Event> untold;
  observation_.observer().look_at_unreported(out.time, untold);
  take(untold);
  for (const auto& [tid, member] : members_.threads()) {
    const model::ManagedProcess* process = members_.process(member.tgid);
    if (process == nullptr || !process->managed) continue;
    SnapshotThread thread{.id = member.id, .tgid = member.tgid, .base = member.base, .class_name = process->class_name};
    if (const auto base = actuator_.base(member.id)) thread.base = *base;
    thread.weight = member.weight;
    thread.importance = options_.donation.rules.importance(thread.base, member.weight, process->class_id);
    thread.watched = decisions_.watches(member.id);
    if (const decide::ThreadLevel* level = deciders_.levels->level(member.id)) thread.level = *level;
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
  out.unenrolled = decisions_.unenrolled();
  for (const auto& [resource, strangers] : out.unenrolled)
    for (const ThreadId stranger : strangers)
      if (observation_.observer().relays(stranger)) out.relays.insert(stranger);
  out.donations = deciders_.donation->donations();
  out.boosts = actuator_.active();
  out.jobs = deciders_.coscheduling->jobs();
  return out;
}

Counters Engine::counters() {
  keep_to_budget(kernel_.clock.now());  // without managed threads there are no ticks
  const ListenerTable::Totals receivers = membership_.listeners().totals();
  Counters out;
  out.managed_threads = members_.managed_threads();
  out.managed_processes = members_.managed_processes();
  out.listeners = membership_.listeners().size();
  out.donations_active = actuator_.active().size();
  out.donations_total = actuator_.total();
  out.notifications = receivers.received;
  out.events_lost = membership_.tracker().counts().lost + feed_.lost() + receivers.lost;
  out.over_quota = membership_.tracker().counts().over_quota;
  out.trouble = observation_.trouble();
  if (out.trouble.empty()) out.trouble = background_.jobs.trouble();
  if (out.trouble.empty()) out.trouble = background_.preempt_clock.trouble();
  out.paused = decisions_.paused();
  out.cpu =
      OwnCpu::times(background_.worker.cpu_time(), receivers.cpu,
                    background_.jobs.cpu_time() + background_.preempt_clock.cpu_time(), background_.memory.cpu_time());
  out.budget = thread_.budget();
  out.costs = observation_.observer().costs();
  out.model = model_.counts();
  out.jobs = deciders_.coscheduling->jobs();
  out.memory = {.on = options_.memory.on,
                .groups = deciders_.memory->groups(),
                .away = deciders_.memory->away(),
                .processes = background_.memory.views(),
                .swapped_out = background_.memory.put_out_bytes()};
  return out;
}

}  // namespace swapd::daemon
