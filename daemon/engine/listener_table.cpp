#include "engine/listener_table.h"

#include <algorithm>
#include <utility>

namespace swapd::daemon {

std::vector<ListenerTable::Listener>::const_iterator ListenerTable::find(const Receiver* receiver) const {
  return std::ranges::find_if(listeners_, [&](const Listener& l) { return l.receiver.get() == receiver; });
}

void ListenerTable::add(std::shared_ptr<Receiver> receiver, pid_t launch) {
  receiver->set_urgent(urgent_);
  Listener& listener = listeners_.emplace_back();
  listener.receiver = std::move(receiver);
  listener.launch = launch;
}

std::uint64_t ListenerTable::remove(const Receiver* receiver) {
  std::erase_if(by_process_, [&](const auto& l) { return l.second == receiver; });
  const auto found = find(receiver);
  if (found == listeners_.end()) return 0;
  const std::uint64_t lost = receiver->lost();
  ended_.received += receiver->received();
  ended_.lost += lost;
  listeners_.erase(found);
  return lost;
}

void ListenerTable::traps_io(const Receiver* receiver) {
  for (Listener& listener : listeners_)
    if (listener.receiver.get() == receiver) listener.io = true;
}

void ListenerTable::inherit(pid_t child, pid_t parent) {
  if (const auto found = by_process_.find(parent); found != by_process_.end()) by_process_[child] = found->second;
}

bool ListenerTable::has_io(pid_t tgid) const {
  const auto found = by_process_.find(tgid);
  const auto listener = found == by_process_.end() ? listeners_.end() : find(found->second);
  return listener != listeners_.end() && listener->io;
}

bool ListenerTable::any_io() const {
  return std::ranges::any_of(listeners_, [](const Listener& l) { return l.io; });
}

const ListenerTable::Receiver* ListenerTable::of_launch(pid_t launch) const {
  if (launch == 0) return nullptr;
  const auto found = std::ranges::find_if(listeners_, [&](const Listener& l) { return l.launch == launch; });
  return found == listeners_.end() ? nullptr : found->receiver.get();
}

bool ListenerTable::set_urgent(bool urgent) {
  if (urgent == urgent_) return false;
  urgent_ = urgent;
  for (const Listener& listener : listeners_) listener.receiver->set_urgent(urgent);
  return true;
}

void ListenerTable::follow(std::span<const Caller> realtime, int priority, const CpuOf& cpu_of) {
  for (Listener& listener : listeners_) {
    const pid_t last = listener.receiver->last_caller();
    pid_t chosen = 0;
    for (const Caller& caller : realtime) {
      const auto bound = by_process_.find(caller.tgid);
      if (bound == by_process_.end() || bound->second != listener.receiver.get()) continue;
      if (chosen == 0 || caller.tid == last) chosen = caller.tid;
    }
    follow(listener, chosen, priority, cpu_of);
  }
}

void ListenerTable::follow(Listener& listener, pid_t caller, int priority, const CpuOf& cpu_of) {
  int cpu = -1;
  if (caller != 0) {
    const bool same = listener.cpu >= 0 && listener.caller == caller;
    if (same && listener.pause > 0) {
      --listener.pause;
      return;
    }
    const std::uint64_t received = listener.receiver->received();
    if (same && received == listener.received) return;  // it has slept, or computed: the next call will tell
    listener.received = received;
    const auto found = cpu_of(caller);
    if (!found) return;
    cpu = *found;
    listener.caller = caller;
    listener.settled = same && cpu == listener.cpu ? std::min(listener.settled + 1, max_pause) : 0;
    listener.pause = listener.settled;
  }
  if (cpu == listener.cpu) return;
  if (listener.receiver->follow(cpu, priority)) listener.cpu = cpu;
}

ListenerTable::Totals ListenerTable::totals() const {
  Totals out = ended_;
  for (const Listener& listener : listeners_) {
    out.received += listener.receiver->received();
    out.lost += listener.receiver->lost();
    out.cpu += listener.receiver->cpu_time();
  }
  return out;
}

}  // namespace swapd::daemon
