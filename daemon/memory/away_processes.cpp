#include "memory/away_processes.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "sys/process/eventfd.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {

namespace {

constexpr Duration looks_each = std::chrono::milliseconds(200);  // while all is as it should be
constexpr Duration enters_each = std::chrono::milliseconds(5);   // while a process is on its way into its group
constexpr Duration waits_for_room_at_most = std::chrono::seconds(2);

std::string named(pid_t tgid) { return "process " + std::to_string(tgid); }

}  // namespace

AwayProcesses::AwayProcesses(const Kernel& kernel, Config config, std::function<void()> notify)
    : kernel_(kernel),
      config_(std::move(config)),
      notify_(std::move(notify)),
      changed_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      terminals_(kernel_.procfs) {}

AwayProcesses::~AwayProcesses() { stop(); }

void AwayProcesses::start() {
  if (config_.dry_run || config_.memory.empty()) return;
  thread_ = std::thread([this] { run(); });
}

void AwayProcesses::stop() {
  {
    const std::lock_guard lock(mutex_);
    shared_.stops = true;
  }
  sys::signal_eventfd(changed_.get());
  if (thread_.joinable()) thread_.join();
}

void AwayProcesses::set(std::vector<pid_t> wanted) {
  std::ranges::sort(wanted);
  {
    const std::lock_guard lock(mutex_);
    if (shared_.wanted == wanted) return;
    shared_.wanted = std::move(wanted);
  }
  sys::signal_eventfd(changed_.get());
}

std::vector<decide::MemoryEvent> AwayProcesses::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(shared_.events, {});
}

std::vector<AwayProcesses::View> AwayProcesses::views() const {
  const std::lock_guard lock(mutex_);
  return shared_.views;
}

Duration AwayProcesses::cpu_time() const {
  const std::lock_guard lock(mutex_);
  return shared_.tid == 0 ? Duration::zero() : sys::own_thread_cpu_time(shared_.tid);
}

void AwayProcesses::tell(decide::MemoryEvent event) {
  {
    const std::lock_guard lock(mutex_);
    shared_.events.push_back(event);
  }
  notify_();
}

void AwayProcesses::refuse(pid_t tgid, Time now) {
  refused_.insert(tgid);
  tell({.time = now, .tgid = tgid, .what = decide::MemoryEvent::What::refused});
  let_go(tgid, now);
}

// Thawed first: whatever else fails, it runs.
void AwayProcesses::let_go(pid_t tgid, Time now) {
  groups_->thaw(tgid);
  groups_->leave(tgid, now);
  terminals_.forget(tgid);
  processes_.erase(tgid);
}

bool AwayProcesses::enter(pid_t tgid, Process& process, Time now) {
  const auto entered = groups_->enter(tgid, now);
  if (entered && !*entered) return true;
  if (!entered || groups_->is_full()) {
    if (!entered && !entered.error().gone())
      spdlog::info("{} is not put away: {}", named(tgid), entered.error().text());
    refuse(tgid, now);
    return false;
  }
  freeze(tgid, process, now);
  return true;
}

void AwayProcesses::freeze(pid_t tgid, Process& process, Time now) {
  const auto frozen = groups_->freeze(tgid, now + config_.stale);
  auto pages = frozen && *frozen ? sys::ProcessPages::open(tgid) : Result<sys::ProcessPages>(Error(EAGAIN, "freezing"));
  if (!frozen || !*frozen || !pages) {
    const Error& why = !frozen ? frozen.error() : pages.error();
    if (!why.gone()) spdlog::info("{} is not put away: {}", named(tgid), why.text());
    return refuse(tgid, now);
  }
  process.pages = std::move(*pages);
  process.phase = Phase::leaves;
  process.since = now;
  if (const auto size = sys::anonymous_size(tgid)) process.resident = size->resident;
  terminals_.watch(tgid);
}

bool AwayProcesses::put_out(pid_t tgid, Process& process) {
  const auto more = process.pages->put_out();
  if (more && *more) return true;
  process.phase = Phase::away;
  if (!more) {
    spdlog::info("{} stays in memory: {}", named(tgid), more.error().text());
  } else if (const auto size = sys::anonymous_size(tgid)) {
    process.put_out = std::max<std::int64_t>(process.resident - size->resident, 0);
    put_out_bytes_ += static_cast<std::uint64_t>(process.put_out);
  }
  return false;
}

bool AwayProcesses::is_wanted(pid_t tgid) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::binary_search(shared_.wanted, tgid);
}

bool AwayProcesses::waits_for_room(Process& process, Time now) {
  if (!process.recalled) process.recalled = now;
  if (now - *process.recalled >= waits_for_room_at_most) return false;
  return std::ranges::any_of(processes_, [&](const auto& one) {
    return (one.second.phase == Phase::enters || one.second.phase == Phase::leaves) && is_wanted(one.first);
  });
}

// True: there is more to bring.
bool AwayProcesses::bring_back(pid_t tgid, Process& process) {
  if (process.phase != Phase::returns) {
    process.phase = Phase::returns;
    terminals_.forget(tgid);
    if (!process.pages || !process.pages->look()) return false;
  }
  const auto more = process.pages->bring_back();
  return more && *more;
}

bool AwayProcesses::step(pid_t tgid, Process& process, Time now) {
  if (!is_wanted(tgid)) {
    if (process.phase != Phase::enters && (waits_for_room(process, now) || bring_back(tgid, process))) return true;
    let_go(tgid, now);
    return false;
  }
  process.recalled.reset();
  switch (process.phase) {
    case Phase::enters:
      return enter(tgid, process, now);
    case Phase::leaves:
      return put_out(tgid, process);
    case Phase::returns:  // it is to stay after all
      process.phase = Phase::leaves;
      return process.pages->look().ok();
    case Phase::away:
      break;
  }
  return false;
}

// The guard has thawed one at which this thread had not looked in time: it runs, and is left alone.
void AwayProcesses::vouch(Time now) {
  std::vector<pid_t> lost;
  for (const auto& [tgid, process] : processes_)
    if (groups_->is_frozen(tgid) && !groups_->vouch(tgid, now + config_.stale)) lost.push_back(tgid);
  for (const pid_t tgid : lost) {
    spdlog::warn("{} was put away and not looked at for too long: it runs again", named(tgid));
    refuse(tgid, now);
  }
}

void AwayProcesses::begin_new(const std::vector<pid_t>& wanted, Time now) {
  std::erase_if(refused_, [&](pid_t tgid) { return !std::ranges::binary_search(wanted, tgid); });
  for (const pid_t tgid : wanted)
    if (!refused_.contains(tgid)) processes_.try_emplace(tgid, Process{.since = now});
}

bool AwayProcesses::work() {
  std::vector<pid_t> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted = shared_.wanted;
  }
  begin_new(wanted, kernel_.clock.now());
  std::vector<pid_t> known;
  for (const auto& [tgid, process] : processes_) known.push_back(tgid);
  bool more = false;
  for (const pid_t tgid : known) {
    const auto at = processes_.find(tgid);
    if (at == processes_.end()) continue;
    more = step(tgid, at->second, kernel_.clock.now()) || more;
    vouch(kernel_.clock.now());
  }
  for (const pid_t tgid : terminals_.ready()) {
    tell({.time = kernel_.clock.now(), .tgid = tgid, .what = decide::MemoryEvent::What::input});
    terminals_.forget(tgid);
  }
  groups_->tidy(kernel_.clock.now());
  publish();
  return more;
}

void AwayProcesses::publish() {
  std::vector<View> views;
  for (const auto& [tgid, process] : processes_)
    views.push_back({.tgid = tgid, .phase = process.phase, .since = process.since, .put_out = process.put_out});
  const std::lock_guard lock(mutex_);
  shared_.views = std::move(views);
}

void AwayProcesses::run() {
  sys::name_thread("swapd-pages");
  groups_.emplace(config_.memory, FreezerGroups::Places{.state_dir = config_.state_dir, .file = "away"});
  {
    const std::lock_guard lock(mutex_);
    shared_.tid = sys::own_tid();
  }
  for (;;) {
    const bool more = work();
    const bool enters =
        std::ranges::any_of(processes_, [](const auto& one) { return one.second.phase == Phase::enters; });
    const Duration rest = !more    ? processes_.empty() ? Duration::max() : looks_each
                          : enters ? enters_each
                                   : Duration::zero();
    std::array<pollfd, 2> wanted{{{.fd = changed_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = terminals_.fd(), .events = POLLIN, .revents = 0}}};
    const int ms = rest == Duration::max()
                       ? -1
                       : static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(rest).count());
    (void)::poll(wanted.data(), wanted.size(), ms);
    sys::clear_eventfd(changed_.get());
    const std::lock_guard lock(mutex_);
    if (shared_.stops) break;
  }
  groups_.reset();  // thaws all
  processes_.clear();
}

}  // namespace swapd::daemon
