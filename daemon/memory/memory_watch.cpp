#include "memory/memory_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

#include "sys/memory/process_pages.h"
#include "sys/process/eventfd.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {

MemoryWatch::MemoryWatch(const Kernel& kernel, Config config, std::function<void()> notify)
    : kernel_(kernel),
      config_(std::move(config)),
      notify_(std::move(notify)),
      changed_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

MemoryWatch::~MemoryWatch() { stop(); }

void MemoryWatch::start() {
  thread_ = std::thread([this] { run(); });
}

void MemoryWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    shared_.stops = true;
  }
  sys::signal_eventfd(changed_.get());
  if (thread_.joinable()) thread_.join();
}

void MemoryWatch::set(std::vector<pid_t> pids, bool away) {
  const std::lock_guard lock(mutex_);
  shared_.pids = std::move(pids);
  shared_.away = away;
}

std::vector<decide::Input> MemoryWatch::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(shared_.told, {});
}

Duration MemoryWatch::cpu_time() const {
  const std::lock_guard lock(mutex_);
  return shared_.tid == 0 ? Duration::zero() : sys::own_thread_cpu_time(shared_.tid);
}

bool MemoryWatch::wait(Duration time) {
  pollfd ended{.fd = changed_.get(), .events = POLLIN, .revents = 0};
  (void)::poll(&ended, 1, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()));
  const std::lock_guard lock(mutex_);
  return !shared_.stops;
}

// The leader of a session with a terminal is a person's shell; of another one a service's first process, which is none.
// sessions: of all processes, sorted. A shell stays, for a person has its jobs from it; a program that alone has a
// terminal of its own (tmux, xterm -e, ssh -t) is as any other.
bool MemoryWatch::is_needed(pid_t tgid, const std::vector<pid_t>& sessions) const {
  const auto stat = kernel_.procfs.stat(tgid);
  if (!stat) return true;  // gone, or not to be seen
  const auto [first, last] = std::equal_range(sessions.begin(), sessions.end(), tgid);
  return std::ranges::find(config_.needed, std::string_view(stat->comm.data())) != config_.needed.end() ||
         (stat->session == tgid && stat->terminal != 0 && last - first > 1);
}

// Jobs are process groups: a shell's job is one, a service is one, and so is a program with its helpers.
void MemoryWatch::look_at_processes(Time now, std::map<std::string, sys::MemoryState>& groups,
                                    const sys::MemoryState& machine, std::vector<decide::Input>& out) const {
  std::vector<pid_t> pids;
  {
    const std::lock_guard lock(mutex_);
    pids = shared_.pids;
  }
  std::vector<pid_t> sessions;
  for (const pid_t tgid : pids) sessions.push_back(::getsid(tgid));
  std::ranges::sort(sessions);
  for (const pid_t tgid : pids) {
    const auto size = sys::anonymous_size(tgid);
    if (!size) continue;
    const std::string group = stat_.group_of(tgid);
    for (std::string above = group; !above.empty(); above.resize(above.rfind('/'))) {
      if (groups.contains(above)) continue;
      if (const auto state = stat_.group(above, machine)) groups.emplace(above, *state);
    }
    out.emplace_back(decide::ProcessMemory{.time = now,
                                           .tgid = tgid,
                                           .job = static_cast<std::uint64_t>(std::max(::getpgid(tgid), 0)),
                                           .group = group,
                                           .needed = is_needed(tgid, sessions),
                                           .resident = size->resident,
                                           .swapped = size->swapped});
  }
}

void MemoryWatch::look(Time now) {
  const auto machine = stat_.machine();
  if (!machine) return;
  std::map<std::string, sys::MemoryState> groups = {{"", *machine}};
  const auto known = before_.find("");
  const bool moves = known != before_.end() && machine->counters.refaults != known->second.counters.refaults;
  if (moves) moved_ = now;
  bool away = false;
  {
    const std::lock_guard lock(mutex_);
    away = shared_.away;
  }
  std::vector<decide::Input> told;
  if (away || now - moved_ <= config_.stays) look_at_processes(now, groups, *machine, told);
  const Duration cost = stat_.page_cost();
  std::map<std::string, Before> seen;
  std::map<std::string, sys::MemoryCounters> moved;
  for (const auto& [name, state] : groups) {
    seen[name] = {state.counters, now};
    if (const auto last = before_.find(name); last != before_.end())
      moved[name] = state.counters - last->second.counters;
  }
  sys::leave_to_groups_within(groups, moved);
  for (const auto& [name, counters] : moved) {
    if (told.empty()) break;
    told.emplace_back(decide::MemoryFared{.time = now,
                                          .group = name,
                                          .window = now - before_.at(name).at,
                                          .refaults = counters.refaults,
                                          .in = counters.in,
                                          .out = counters.out,
                                          .page_cost = cost,
                                          .room = groups.at(name).room,
                                          .swap_room = groups.at(name).swap_room});
  }
  before_ = std::move(seen);
  if (told.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    shared_.told = std::move(told);  // an engine that has not taken the last round gets this one alone
  }
  notify_();
}

void MemoryWatch::run() {
  sys::name_thread("swapd-memory");
  sys::go_before_ordinary_threads();
  {
    const std::lock_guard lock(mutex_);
    shared_.tid = sys::own_tid();
  }
  for (;;) {
    const Time now = kernel_.clock.now();
    look(now);
    if (!wait(now - moved_ <= config_.stays ? config_.window : config_.rest)) return;
  }
}

}  // namespace swapd::daemon
