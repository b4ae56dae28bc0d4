#include "engine/job_evidence.h"

#include <algorithm>
#include <array>
#include <bit>

namespace swapd::daemon {

void Contention::look(int runnable, int cpus) {
  cpus_ = cpus;
  const bool competes = runnable > cpus;
  last_ = last_ << 1U | (competes ? 1U : 0U);
  without_ = competes ? 0 : without_ + 1;
  if (std::popcount(last_ & 7U) >= begins_after) found_ = true;
  if (without_ >= ends_after) found_ = false;
  crowd_ = std::max(static_cast<double>(runnable) / cpus, 1.0);
}

bool Contention::often() const { return found_ && std::popcount(last_) >= often_after; }

void OthersShare::end_window(std::span<const Seen> managed, std::uint64_t unmanaged, double of_all, Time now) {
  for (const Seen& seen : managed)
    if (seen.matters) mattered_[seen.tgid] = now;
  std::erase_if(mattered_, [&](const auto& one) { return now - one.second > lately; });
  std::uint64_t others = unmanaged;
  for (const Seen& seen : managed)
    if (!mattered_.contains(seen.tgid)) others += seen.samples;
  const double part = static_cast<double>(others) / of_all;
  part_ = part_ ? *part_ + weight * (part - *part_) : part;
}

void SamplingTurns::end_window(bool fruitful, Time now) {
  fruitless_ = fruitful ? 0 : fruitless_ + 1;
  if (fruitless_ < max_fruitless) return;
  fruitless_ = 0;
  rests_until_ = now + rest;
  rest_after_begin_ = rest - shortest_rest;
}

bool MemorySharers::set(pid_t pid, std::vector<Place> writable, pid_t launcher) {
  if (launcher != 0) writable.emplace_back(launchers, launcher);
  std::ranges::sort(writable);
  writable.erase(std::unique(writable.begin(), writable.end()), writable.end());
  const auto [known, is_new] = places_.try_emplace(pid);
  if (!is_new && known->second == writable) return false;
  known->second = std::move(writable);
  join();
  return true;
}

void MemorySharers::keep_only(const std::vector<pid_t>& pids) {
  if (std::erase_if(places_, [&](const auto& one) { return !std::ranges::binary_search(pids, one.first); }) != 0)
    join();
}

// Each process stands for itself, or for the lowest that it is connected with.
void MemorySharers::join() {
  jobs_.clear();
  sharing_.clear();
  std::map<Place, std::vector<pid_t>> by_place;
  for (const auto& [pid, places] : places_) {
    jobs_[pid] = pid;
    for (const Place& place : places) by_place[place].push_back(pid);
  }
  const auto root = [&](pid_t pid) {
    while (jobs_[pid] != pid) pid = jobs_[pid];
    return pid;
  };
  for (const auto& [place, pids] : by_place) {
    const bool memory = place.first != launchers;
    if (pids.size() > max_sharers && memory) continue;
    if (pids.size() > 1 && memory) sharing_.insert(pids.begin(), pids.end());
    for (const pid_t pid : pids) {
      const pid_t one = root(pids.front());
      const pid_t other = root(pid);
      jobs_[std::max(one, other)] = std::min(one, other);
    }
  }
  for (auto& [pid, job] : jobs_) job = root(pid);
}

pid_t MemorySharers::job_of(pid_t pid) const {
  const auto at = jobs_.find(pid);
  return at == jobs_.end() ? pid : at->second;
}

bool WaitLibraries::is_one(std::string_view file) {
  constexpr std::array starts = {
      "libmpi.",  "libmpi_",   "libmpich",  "libopen-pal", "libopen-rte", "mca_",      // Open MPI, MPICH
      "libucp.",  "libuct",    "libucs.",   "libfabric.",  "libpsm",      "libnccl.",  // transports
      "libgomp.", "libiomp5.", "libomp.so",
  };
  file.remove_prefix(file.rfind('/') + 1);
  return std::ranges::any_of(starts, [&](std::string_view start) { return file.starts_with(start); });
}

void WaitLibraries::set(pid_t pid, std::vector<Part> parts) {
  if (parts.empty())
    parts_.erase(pid);
  else
    parts_[pid] = std::move(parts);
}

void WaitLibraries::keep_only(const std::vector<pid_t>& pids) {
  std::erase_if(parts_, [&](const auto& one) { return !std::ranges::binary_search(pids, one.first); });
}

double WaitLibraries::part(pid_t pid, std::span<const std::uint64_t> places) const {
  const auto at = parts_.find(pid);
  const auto known = std::ranges::count_if(places, [](std::uint64_t one) { return one != 0; });
  if (at == parts_.end() || known == 0) return 0;
  const auto in_one = std::ranges::count_if(places, [&](std::uint64_t place) {
    return std::ranges::any_of(at->second, [&](const Part& p) { return p.begin <= place && place < p.end; });
  });
  return static_cast<double>(in_one) / static_cast<double>(known);
}

bool MappingLooks::due(pid_t pid, Time now) const {
  const auto known = looks_.find(pid);
  return now >= credit_.next() && (known == looks_.end() || now >= known->second.next);
}

void MappingLooks::looked(pid_t pid, bool changed, Duration took, Time now) {
  const auto [known, is_new] = looks_.try_emplace(pid, Look{.first = now});
  Look& look = known->second;
  const bool soon = is_new || (changed && now - look.first < starts);
  look.pause = soon ? least : std::min(2 * look.pause, most);
  look.next = now + std::max(look.pause, rest_of_cost * took);
  credit_.pay(took, now);
}

void MappingLooks::keep_only(const std::vector<pid_t>& pids) {
  std::erase_if(looks_, [&](const auto& one) { return !std::ranges::binary_search(pids, one.first); });
}

void BusyWaiters::add(pid_t tid, std::uint64_t waits, std::uint64_t samples) {
  Last& last = threads_[tid];
  last.waits += static_cast<double>(waits);
  last.samples += static_cast<double>(samples);
}

void BusyWaiters::end_window() {
  for (auto& [tid, last] : threads_) {
    last.waits *= kept;
    last.samples *= kept;
  }
  std::erase_if(threads_, [](const auto& one) { return one.second.samples < forgotten; });
}

bool BusyWaiters::waits(pid_t tid) const {
  const auto at = threads_.find(tid);
  return at != threads_.end() && at->second.samples >= least_samples &&
         at->second.waits >= least_part * at->second.samples;
}

bool Yielders::look(pid_t tid, const sys::Procfs::SchedStat& now, Time at) {
  const auto [place, is_new] = threads_.try_emplace(tid);
  const Before before = place->second;
  const Duration used = is_new ? Duration::zero() : now.cpu - before.stat.cpu;
  place->second = {.stat = now, .at = at, .used = used, .round = round_};
  const std::uint64_t turns = now.turns - before.stat.turns;
  if (is_new || now.turns < before.stat.turns || turns < least_turns) return false;
  return now.waited - before.stat.waited >= std::chrono::duration_cast<Duration>((at - before.at) * waits) &&
         used / static_cast<Duration::rep>(turns) <= longest_turn;
}

Duration Yielders::used(pid_t tid) const {
  const auto at = threads_.find(tid);
  return at == threads_.end() ? Duration::zero() : at->second.used;
}

std::optional<Duration> Yielders::begin_round(Time now, Duration pause) {
  if (now - begun_ < pause) return std::nullopt;
  return now - std::exchange(begun_, now);
}

void Yielders::end_round() {
  std::erase_if(threads_, [&](const auto& one) { return one.second.round != round_; });
  ++round_;
}

bool MemorySharers::has_mates(pid_t pid) const {
  const pid_t job = job_of(pid);
  return std::ranges::count(jobs_, job, [](const auto& one) { return one.second; }) > 1;
}

}  // namespace swapd::daemon
