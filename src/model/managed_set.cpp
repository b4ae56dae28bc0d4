#include "model/managed_set.h"

#include <algorithm>
#include <utility>

namespace swapd::model {

const ManagedThread* ManagedSet::thread(pid_t tid) const {
  const auto found = threads_.find(tid);
  return found == threads_.end() ? nullptr : &found->second;
}

const ManagedThread* ManagedSet::thread(ThreadId id) const {
  const ManagedThread* found = thread(id.tid);
  return found != nullptr && found->id == id ? found : nullptr;
}

const ManagedProcess* ManagedSet::process(pid_t tgid) const {
  const auto found = processes_.find(tgid);
  return found == processes_.end() ? nullptr : &found->second;
}

ManagedProcess& ManagedSet::add_process(pid_t tgid, std::uint64_t start_time, std::uint32_t uid,
                                        std::string class_name) {
  changed();
  const auto [found, is_new] = processes_.try_emplace(tgid);
  ManagedProcess& process = found->second;
  if (!is_new) own(process, -1);
  process.tgid = tgid;
  process.start_time = start_time;
  process.uid = uid;
  const auto place = std::ranges::find(classes_, class_name);
  process.class_id = place == classes_.end() ? ClassId{} : static_cast<ClassId>(place - classes_.begin() + 1);
  process.class_name = std::move(class_name);
  own(process, 1);
  tell(process, !process.managed);
  return process;
}

void ManagedSet::own(const ManagedProcess& process, int by) {
  if (process.managed && !process.threads.empty()) own(process.uid, by, by * static_cast<int>(process.threads.size()));
}

void ManagedSet::own(std::uint32_t uid, int processes, int threads) {
  Held& held = held_[uid];
  held.processes += static_cast<std::size_t>(processes);
  held.threads += static_cast<std::size_t>(threads);
  if (held.processes == 0) held_.erase(uid);
}

ManagedSet::Held ManagedSet::held_by(std::uint32_t uid) const {
  const auto found = held_.find(uid);
  return found == held_.end() ? Held{} : found->second;
}

void ManagedSet::drop_if_empty(pid_t tgid) {
  const auto found = processes_.find(tgid);
  if (found == processes_.end() || !found->second.threads.empty()) return;
  tell(found->second, true);
  processes_.erase(found);
  changed();
}

void ManagedSet::count(const ManagedThread& thread, int by) {
  const ManagedProcess* owner = process(thread.tgid);
  if (owner == nullptr || !owner->managed) return;
  const int r = rank(thread.base);
  if ((ranks_[r] += static_cast<std::size_t>(by)) == 0) ranks_.erase(r);
}

void ManagedSet::add_thread(const ManagedThread& thread) {
  const auto owner = processes_.find(thread.tgid);
  if (owner == processes_.end()) return;
  auto [place, is_new] = threads_.try_emplace(thread.id.tid, thread);
  if (is_new) {
    if (owner->second.managed) own(owner->second.uid, owner->second.threads.empty() ? 1 : 0, 1);
    owner->second.threads.push_back(thread.id.tid);
  } else {
    count(place->second, -1);
    place->second = thread;
  }
  count(thread, 1);
  if (thread.base.realtime())
    realtime_.insert(thread.id.tid);
  else
    realtime_.erase(thread.id.tid);
}

void ManagedSet::remove_thread(pid_t tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  count(found->second, -1);
  const auto owner = processes_.find(found->second.tgid);
  if (owner != processes_.end()) {
    std::erase(owner->second.threads, tid);
    if (owner->second.managed) own(owner->second.uid, owner->second.threads.empty() ? -1 : 0, -1);
    drop_if_empty(owner->first);
  }
  threads_.erase(found);
  realtime_.erase(tid);
}

bool ManagedSet::set_uid(pid_t tgid, std::uint32_t uid) {
  const auto found = processes_.find(tgid);
  if (found == processes_.end() || found->second.uid == uid) return false;
  own(found->second, -1);
  found->second.uid = uid;
  own(found->second, 1);
  return true;
}

void ManagedSet::set_managed(pid_t tgid, bool managed) {
  const auto found = processes_.find(tgid);
  if (found == processes_.end() || found->second.managed == managed) return;
  const auto count_threads = [&](int by) {
    for (const pid_t tid : found->second.threads)
      if (const ManagedThread* known = thread(tid)) count(*known, by);
  };
  if (!managed) count_threads(-1);
  own(found->second, -1);
  found->second.managed = managed;
  own(found->second, 1);
  tell(found->second, !managed);
  changed();
  if (managed) count_threads(1);
}

void ManagedSet::set_launch(pid_t tgid, pid_t launch) {
  const auto found = processes_.find(tgid);
  if (found != processes_.end() && std::exchange(found->second.launch, launch) != launch) changed();
}

void ManagedSet::set_weight(pid_t tgid, Weight weight) {
  if (const auto found = processes_.find(tgid); found != processes_.end()) found->second.weight = weight;
}

std::size_t ManagedSet::managed_threads() const {
  std::size_t n = 0;
  for (const auto& [rank, threads] : ranks_) n += threads;
  return n;
}

std::size_t ManagedSet::managed_processes() const {
  return static_cast<std::size_t>(std::ranges::count_if(processes_, [](const auto& p) { return p.second.managed; }));
}

std::vector<pid_t> ManagedSet::managed_pids() const {
  std::vector<pid_t> pids;
  for (const auto& [tgid, process] : processes_)
    if (process.managed) pids.push_back(tgid);
  return pids;
}

}  // namespace swapd::model
