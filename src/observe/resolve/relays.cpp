#include "observe/resolve/relays.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace swapd::observe {

bool is_message_bus(std::string_view comm) { return comm == "dbus-daemon" || comm == "dbus-broker"; }

bool Relays::holds(const Resource& resource, ThreadId thread, std::vector<ThreadId>& dropped) {
  if (ends_.size() >= max_ends && !ends_.contains(resource)) ends_.clear();
  std::vector<pid_t>& of = ends_[resource];
  if (std::ranges::find(of, thread.tid) == of.end()) of.push_back(thread.tid);
  const auto known = threads_.find(thread.tid);
  const bool is_new = known == threads_.end() || known->second.id != thread;
  if (is_new && known == threads_.end() && threads_.size() >= max_threads) {
    const auto oldest = std::ranges::min_element(threads_, {}, [](const auto& one) { return one.second.used; });
    dropped.push_back(oldest->second.id);
    threads_.erase(oldest);
  }
  // It may be awake, with what was sent to it just now.
  if (is_new) threads_.insert_or_assign(thread.tid, Thread{.id = thread, .runs = {Awake{.unseen = true}}});
  threads_[thread.tid].used = ++uses_;
  return is_new;
}

void Relays::forget(ThreadId thread) {
  const auto found = threads_.find(thread.tid);
  if (found == threads_.end() || found->second.id != thread) return;
  threads_.erase(found);
  for (auto at = ends_.begin(); at != ends_.end();) {
    std::erase(at->second, thread.tid);
    at = at->second.empty() ? ends_.erase(at) : std::next(at);
  }
}

std::optional<ThreadId> Relays::thread(pid_t tid) const {
  const auto found = threads_.find(tid);
  return found == threads_.end() ? std::nullopt : std::optional(found->second.id);
}

bool Relays::proven(pid_t tid) const {
  const auto found = threads_.find(tid);
  return found != threads_.end() && found->second.proven;
}

void Relays::prove(pid_t tid) {
  if (const auto found = threads_.find(tid); found != threads_.end()) found->second.proven = true;
}

bool Relays::passes_on(pid_t tid) const {
  const auto found = threads_.find(tid);
  return found != threads_.end() && (found->second.passes_on || found->second.proven);
}

void Relays::passed_on(pid_t tid) {
  if (const auto found = threads_.find(tid); found != threads_.end()) found->second.passes_on = true;
}

void Relays::woken(pid_t tid, pid_t by, pid_t process, Time time, std::uint32_t wakes_before) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  std::deque<Awake>& runs = found->second.runs;
  if (!runs.empty() && runs.back().to == Time::max()) runs.back().to = time;  // its block was not heard of
  runs.push_back({.by = by, .process = process, .from = time, .wakes_before = wakes_before});
  if (runs.size() > max_runs) runs.pop_front();
}

void Relays::blocked(pid_t tid, Time time) {
  const auto found = threads_.find(tid);
  if (found != threads_.end() && !found->second.runs.empty()) found->second.runs.back().to = time;
}

void Relays::ask(pid_t tid) {
  if (const auto found = threads_.find(tid); found != threads_.end()) found->second.asked = true;
}

bool Relays::take_asked(pid_t tid) {
  const auto found = threads_.find(tid);
  return found != threads_.end() && std::exchange(found->second.asked, false);
}

pid_t Relays::last_sender(pid_t tid) const {
  const auto found = threads_.find(tid);
  return found == threads_.end() || found->second.runs.empty() ? 0 : found->second.runs.back().by;
}

bool Relays::woken_after(pid_t tid, Time time) const {
  const auto found = threads_.find(tid);
  return found != threads_.end() && !found->second.runs.empty() && found->second.runs.back().from >= time;
}

std::optional<Resource> Relays::end_of(pid_t tid, std::span<const Resource> awaited) const {
  for (const Resource& resource : awaited)
    if (const auto of = ends_.find(resource);
        of != ends_.end() && std::ranges::find(of->second, tid) != of->second.end())
      return resource;
  return std::nullopt;
}

std::optional<Relays::Run> Relays::run_of(pid_t process, std::span<const Resource> awaited, Time before,
                                          Time since) const {
  for (const Resource& resource : awaited) {
    const auto of = ends_.find(resource);
    if (of == ends_.end()) continue;
    for (const pid_t tid : of->second) {
      const auto found = threads_.find(tid);
      if (found == threads_.end()) continue;
      std::uint32_t last = std::numeric_limits<std::uint32_t>::max();
      const std::deque<Awake>& runs = found->second.runs;
      for (auto run = runs.rbegin(); run != runs.rend() && run->to >= before; ++run) {
        const bool woke_it = run->process == process && run->from >= before;
        const bool found_it_awake = run->from <= since && since <= run->to;
        if (woke_it || found_it_awake)
          return Run{.tid = tid,
                     .over = run->to != Time::max(),
                     .began_it = run->process == process,
                     .unseen = run->unseen,
                     .from = run->from,
                     .first = run->wakes_before + 1,
                     .last = last};
        last = run->wakes_before;
      }
    }
  }
  return std::nullopt;
}

}  // namespace swapd::observe
