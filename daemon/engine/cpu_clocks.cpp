#include "engine/cpu_clocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace swapd::daemon {

namespace {
// How late the CPU time of a thread whose clock does not ring is looked at again.
constexpr Duration max_look = std::chrono::milliseconds(4);
// The end of lingering need not be exact: an eighth of its time is not worth another turn.
constexpr int linger_part = 8;
}  // namespace

void ExactTiming::add(ThreadId thread) {
  if (users_[thread]++ == 0 && observer_.counts_cpu()) observer_.time_exactly(thread, true);
}

void ExactTiming::remove(ThreadId thread) {
  const auto known = users_.find(thread);
  if (known == users_.end() || --known->second > 0) return;
  users_.erase(known);
  if (observer_.counts_cpu()) observer_.time_exactly(thread, false);
}

CpuClocks::CpuClocks(observe::Observer& observer, ExactTiming& exact, sys::EventLoop& loop, Hooks hooks)
    : observer_(observer), exact_(exact), loop_(loop), hooks_(std::move(hooks)) {}

CpuClocks::Pooled* CpuClocks::pooled(const decide::Timer& timer) {
  const auto found = pool_.find({timer.requester, timer.cpu_of, timer.kind});
  return found == pool_.end() ? nullptr : &found->second;
}

const CpuClocks::Pooled* CpuClocks::pooled(const decide::Timer& timer) const {
  const auto found = pool_.find({timer.requester, timer.cpu_of, timer.kind});
  return found == pool_.end() ? nullptr : &found->second;
}

// To open a descriptor and to close it again costs more than a quantum tells.
bool CpuClocks::make_room(Time now) {
  if (pool_.size() < max_pooled) return true;
  if (now < full_until_) return false;
  auto oldest = pool_.end();
  for (auto at = pool_.begin(); at != pool_.end(); ++at)
    if (at->second.on == 0 && (oldest == pool_.end() || at->second.last_used < oldest->second.last_used)) oldest = at;
  if (oldest == pool_.end() || now - oldest->second.last_used < idle_for) {
    full_until_ = oldest == pool_.end() ? now + idle_for : oldest->second.last_used + idle_for;
    return false;
  }
  pool_.erase(oldest);
  return true;
}

// Each costs its thread a microsecond whenever that gets or leaves a CPU.
void CpuClocks::drop_unused(Time now) {
  if (pool_.empty() || now < next_drop_) return;
  next_drop_ = now + kept;
  std::erase_if(pool_, [](auto& one) { return one.second.on == 0 && !std::exchange(one.second.used, false); });
}

CpuClocks::Pooled* CpuClocks::open(ThreadId requester, ThreadId thread, Kind kind, Time now) {
  const PoolKey key{requester, thread, kind};
  if (const auto known = pool_.find(key); known != pool_.end()) {
    known->second.last_used = now;
    known->second.used = true;
    return &known->second;
  }
  if (!make_room(now)) return nullptr;
  Pooled& made = pool_[key];
  made.last_used = now;
  made.key = next_key_++;
  auto opened = sys::CpuTimer::open(thread.tid);
  if (!opened) return &made;
  made.perf = std::move(opened).value();
  auto added = loop_.add(made.perf->fd(), [this, key = made.key](const sys::EventLoop::Ready& ready_now) {
    ready(key, ready_now.hung_up, ready_now.now);
  });
  if (added)
    made.registration = std::move(*added);
  else
    made.perf.reset();
  return &made;
}

bool CpuClocks::counted(const decide::Timer& timer) const {
  if (observer_.counts_cpu()) return true;
  const Pooled* pool = pooled(timer);
  return pool != nullptr && pool->perf;
}

bool CpuClocks::rings(const decide::Timer& timer) const {
  const Pooled* pool = pooled(timer);
  return timer.kind == Kind::quantum && pool != nullptr && pool->perf;
}

std::optional<Duration> CpuClocks::used_so_far(const decide::Timer& timer, Time now) const {
  if (observer_.counts_cpu()) return observer_.cpu_time(timer.cpu_of, now);
  const Pooled* pool = pooled(timer);
  return pool != nullptr && pool->perf ? std::optional(pool->perf->used()) : std::nullopt;
}

void CpuClocks::apply(std::size_t decider, std::span<const decide::Timer> wanted, Time now) {
  for (auto& [key, clock] : clocks_)
    if (std::get<0>(key) == decider) clock.wanted = false;
  for (const decide::Timer& timer : wanted) {
    const Key key{decider, timer.kind, timer.requester};
    Clock& clock = clocks_[key];
    clock.wanted = true;
    if (clock.timer.serial == timer.serial && clock.timer.cpu_of == timer.cpu_of) continue;
    disarm(clock);
    clock.timer = timer;
    if (!observer_.counts_cpu()) (void)open(timer.requester, timer.cpu_of, timer.kind, now);
    arm(clock, now);
  }
  for (auto at = clocks_.begin(); at != clocks_.end();) {
    if (!at->second.wanted) disarm(at->second);
    at = at->second.wanted ? std::next(at) : clocks_.erase(at);
  }
  find_next();
}

void CpuClocks::arm(Clock& clock, Time now) {
  const decide::Timer& timer = clock.timer;
  clock.on = true;
  clock.wall_end = now + (counted(timer) ? timer.wall : timer.wall_uncounted);
  if (timer.kind == Kind::quantum) hooks_.quantum_begins(timer.cpu_of, now);
  if (Pooled* pool = pooled(timer); pool != nullptr) {
    ++pool->on;
    clock.pooled = true;
  }
  if (rings(timer)) return pooled(timer)->perf->arm(timer.period);
  if (!counted(timer)) return;
  if (timer.kind == Kind::quantum) exact_.add(timer.cpu_of);
  clock.armed = now;
  clock.start = used_so_far(timer, now).value_or(Duration::zero());
  clock.used = {};
  clock.due = now + timer.period;
}

void CpuClocks::disarm(Clock& clock) {
  if (!std::exchange(clock.on, false)) return;
  if (std::exchange(clock.pooled, false))
    if (Pooled* pool = pooled(clock.timer); pool != nullptr) {
      --pool->on;
      pool->used = true;
    }
  if (rings(clock.timer))
    pooled(clock.timer)->perf->disarm();
  else if (clock.timer.kind == Kind::quantum && counted(clock.timer))
    exact_.remove(clock.timer.cpu_of);
}

void CpuClocks::fire(const Key& key, Clock& clock, bool gone, Time now, std::vector<decide::TimerFired>& out) {
  if (clock.timer.kind == Kind::quantum && !gone) hooks_.quantum_ends(clock.timer.cpu_of, now);
  out.push_back({.time = now,
                 .decider = static_cast<std::uint32_t>(std::get<0>(key)),
                 .kind = clock.timer.kind,
                 .requester = clock.timer.requester,
                 .serial = clock.timer.serial,
                 .wall_left = std::max(clock.wall_end - now, Duration::zero()),
                 .unreported = observer_.waits_unreported(clock.timer.requester),
                 .gone = gone});
  disarm(clock);
}

bool CpuClocks::looked_at(const Clock& clock) const { return clock.on && counted(clock.timer) && !rings(clock.timer); }

void CpuClocks::find_next() {
  next_.reset();
  for (const auto& [key, clock] : clocks_)
    if (looked_at(clock)) next_ = std::min(clock.due, next_.value_or(Time::max()));
}

void CpuClocks::ready(std::uint64_t key, bool hung_up, Time now) {
  const auto found = std::ranges::find(pool_, key, [](const auto& one) { return one.second.key; });
  if (found == pool_.end()) return;
  const PoolKey of = found->first;
  if (!hung_up && found->second.perf && !found->second.perf->expired()) return;
  std::vector<decide::TimerFired> fired;
  for (auto& [at, clock] : clocks_)
    if (clock.on && PoolKey{clock.timer.requester, clock.timer.cpu_of, clock.timer.kind} == of)
      fire(at, clock, hung_up, now, fired);
  if (hung_up) pool_.erase(of);
  for (const decide::TimerFired& one : fired) hooks_.rang(one);
}

void CpuClocks::run(Time now, std::vector<decide::TimerFired>& out) {
  if (!next_ || now < *next_) return;
  for (auto& [key, clock] : clocks_) {
    if (!looked_at(clock) || now < clock.due) continue;
    const auto total = used_so_far(clock.timer, now);
    const Duration used = total ? *total - clock.start : clock.timer.period;  // none: it is not managed any more
    const Duration before = std::exchange(clock.used, used);
    const Duration left = clock.timer.period - used;
    // One that gets no CPU is looked at less and less often.
    clock.due = now + (used > before ? std::max(left, min_look)
                                     : std::max(left, std::min<Duration>(now - clock.armed, max_look)));
    const bool linger = clock.timer.kind == Kind::linger;
    if (left <= (linger ? clock.timer.period / linger_part : Duration::zero())) fire(key, clock, false, now, out);
  }
  find_next();
}

void CpuClocks::tick(Time now, std::vector<decide::TimerFired>& out) {
  drop_unused(now);
  for (auto& [key, clock] : clocks_)
    if (clock.on && now >= clock.wall_end && (clock.timer.kind == Kind::linger || !counted(clock.timer)))
      fire(key, clock, false, now, out);
}

bool CpuClocks::idle() const {
  return std::ranges::none_of(clocks_, [](const auto& one) { return one.second.on; });
}

void CpuClocks::forget(ThreadId thread) {
  for (auto at = clocks_.begin(); at != clocks_.end();) {
    const bool concerned = at->second.timer.requester == thread || at->second.timer.cpu_of == thread;
    if (concerned) disarm(at->second);
    at = concerned ? clocks_.erase(at) : std::next(at);
  }
  std::erase_if(pool_,
                [&](const auto& one) { return std::get<0>(one.first) == thread || std::get<1>(one.first) == thread; });
  exact_.forget(thread);
}

std::optional<CpuClocks::Reading> CpuClocks::cpu_time(ThreadId thread, Time now) const {
  if (observer_.counts_cpu()) {
    const auto used = observer_.cpu_time(thread, now);
    return used ? std::optional(Reading{*used, 0}) : std::nullopt;
  }
  for (const auto& [key, pool] : pool_)
    if (std::get<1>(key) == thread && pool.perf) {
      pool.last_used = now;
      pool.used = true;
      return Reading{pool.perf->used(), pool.key};
    }
  return std::nullopt;
}

bool CpuClocks::has_clock(ThreadId thread) const {
  return observer_.counts_cpu() || std::ranges::any_of(pool_, [&](const auto& one) {
           return std::get<1>(one.first) == thread && one.second.perf;
         });
}

bool CpuClocks::open_clock(ThreadId requester, ThreadId thread, Time now) {
  if (pool_.size() >= max_pooled) return false;
  const Pooled* made = open(requester, thread, Kind::quantum, now);
  return made != nullptr && made->perf;
}

}  // namespace swapd::daemon
