#include "observe/resolve/pollers.h"

#include <algorithm>

namespace swapd::observe {

namespace {

constexpr Duration longest_between = std::chrono::milliseconds(150);  // the beginnings of two sleeps
constexpr unsigned min_in_a_row = 3;
constexpr Duration shortest_pause = std::chrono::milliseconds(50);  // between two looks
constexpr Duration min_pause = std::chrono::milliseconds(20);       // … of which the second is of another row
constexpr Duration longest_pause = std::chrono::seconds(2);
constexpr std::size_t max_sleepers = 4096;
constexpr std::size_t max_contended = 16;

}  // namespace

bool Pollers::sleeps(pid_t tid, const Place& place, bool found, Time now) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  if (sleepers_.size() >= max_sleepers && !sleepers_.contains(tid)) sleepers_.clear();
  Sleeper& sleeper = sleepers_[tid];
  if (sleeper.place != place || now - sleeper.last > longest_between)
    sleeper = {.place = place, .looked = sleeper.looked, .pause = min_pause};
  sleeper.last = now;
  if (++sleeper.in_a_row < min_in_a_row) return false;
  if (now - sleeper.looked < (found ? shortest_pause : sleeper.pause)) return false;
  sleeper.looked = now;
  sleeper.pause = found ? shortest_pause : std::clamp<Duration>(2 * sleeper.pause, shortest_pause, longest_pause);
  return true;
}

bool Pollers::polls(pid_t tid, Time now) const {
  const std::lock_guard lock(mutex_);
  const auto found = sleepers_.find(tid);
  return found != sleepers_.end() && found->second.in_a_row >= min_in_a_row &&
         now - found->second.last <= longest_between;
}

void Pollers::forget(pid_t tid) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) sleepers_.erase(tid);
}

std::vector<Resource> contended_locks(std::span<const sys::LockLine> locks, std::span<const FileId> files, pid_t own) {
  using LockType = sys::LockLine::Type;
  const auto of_another = [&](const sys::LockLine& line) {
    const bool kind = line.type == LockType::flock || line.type == LockType::posix;
    return kind && !line.waiting && line.pid > 0 && line.pid != own &&
           std::ranges::find(files, FileId{line.dev, line.ino}) != files.end();
  };
  std::vector<Resource> exclusive, shared;
  for (const sys::LockLine& line : locks) {
    if (!of_another(line)) continue;
    std::vector<Resource>& out = line.write ? exclusive : shared;
    const Resource resource = line.type == LockType::flock
                                  ? file_lock({line.dev, line.ino}, line.write ? LockMode::exclusive : LockMode::shared)
                                  : byte_range_lock({line.dev, line.ino}, line.first, line.last);
    if (out.size() < max_contended && std::ranges::find(out, resource) == out.end()) out.push_back(resource);
  }
  return exclusive.empty() ? shared : exclusive;
}

}  // namespace swapd::observe
