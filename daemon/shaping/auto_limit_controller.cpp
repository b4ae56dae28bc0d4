#include "shaping/auto_limit_controller.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/size.h"
#include "sys/process/self_process.h"
#include "sys/procfs/io_counters.h"
#include "sys/procfs/ticks.h"
#include "sys/sched/scheduler.h"

namespace swapd::daemon {
namespace {

using decide::AutoLimit;
using decide::Tokens;

constexpr std::chrono::milliseconds measured_every{20};
constexpr std::size_t max_watched = 256, max_processes = 1024;  // of a class
constexpr double default_wait = 0.5;

decide::NeedRules needs_of(const policy::AutoRules& rules) {
  decide::NeedRules out;
  out.rate = rules.rate;
  if (rules.wait_percent) out.wait = *rules.wait_percent / 100.0;
  if (!out.rate && !out.wait) out.wait = default_wait;
  return out;
}

// A program often hands on what it reads, so only the larger of the two is counted.
Tokens by_calls_of(const sys::IoCounters& io) { return static_cast<Tokens>(std::max(io.read_chars, io.written_chars)); }
Tokens by_disk_of(const sys::IoCounters& io) { return static_cast<Tokens>(io.read_bytes + io.written_bytes); }

}  // namespace

AutoLimitController::AutoLimitController(Engine& engine, Shaper& shaper, const sys::Procfs& procfs, const Clock& clock)
    : engine_(engine), shaper_(shaper), procfs_(procfs), clock_(clock) {
  if (auto delays = sys::TaskDelays::open()) delays_.emplace(std::move(delays).value());
}

void AutoLimitController::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void AutoLimitController::set(const std::string& class_name, const policy::AutoRules& rules) {
  const std::lock_guard lock(mutex_);
  const auto known = all_.find(class_name);
  if (known != all_.end() && known->second.rules == rules) return;
  if (known != all_.end()) all_.erase(known);
  shaper_.set_automatic(class_name, std::nullopt);
  const decide::NeedRules needs = needs_of(rules);
  if (rules.on() || known != all_.end())
    asked_.push_back({.time = clock_.now(),
                      .class_name = class_name,
                      .on = rules.on(),
                      .least = rules.least,
                      .rate = needs.rate,
                      .wait = needs.wait});
  changed_.notify_all();
  if (!rules.on()) return;
  all_.emplace(class_name, Automatic{.rules = rules,
                                     .view = {},
                                     .threads = {},
                                     .moved = {},
                                     .looked = clock_.now(),
                                     .looked_ticks = sys::ticks_since_boot()});
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  changed_.notify_all();
}

std::optional<AutoLimitController::View> AutoLimitController::view(const std::string& class_name) const {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(class_name);
  if (found == all_.end()) return std::nullopt;
  return found->second.view;
}

void AutoLimitController::run(const std::stop_token& stop) {
  sys::name_thread("swapd-auto");
  (void)sys::set_thread_nice(0, -20);
  Time next = clock_.now() + AutoLimit::period;
  while (!stop.stop_requested()) {
    bool watches = false;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !all_.empty() || !asked_.empty(); })) return;
      for (auto& [name, one] : all_) {
        if (one.alone) continue;
        watches = watches || !one.threads.empty();
        sample(one);
      }
      const Time now = clock_.now();
      const Duration pause = watches ? std::min<Duration>(measured_every, next - now) : next - now;
      if (now < next) (void)changed_.wait_for(lock, stop, pause, [] { return false; });
    }
    std::vector<decide::AutoLimitAsked> asked;
    {
      const std::lock_guard lock(mutex_);
      asked.swap(asked_);
    }
    if (!asked.empty() && !tell(asked, {})) return;
    if (clock_.now() < next || stop.stop_requested()) continue;
    Groups groups;
    if (!list_members(groups)) return;  // the engine has ended
    std::vector<decide::ClassFared> fared;
    {
      const std::lock_guard lock(mutex_);
      const Time now = clock_.now();
      next = now + AutoLimit::period;
      for (auto& [name, one] : all_) fared.push_back(measure(name, one, groups[one.rules.protects], groups[name], now));
    }
    if (!fared.empty() && !tell({}, fared)) return;
  }
}

bool AutoLimitController::tell(const std::vector<decide::AutoLimitAsked>& asked,
                               const std::vector<decide::ClassFared>& fared) {
  std::map<std::string, View> views;
  const bool told = engine_.call([&](Engine& e) {
    for (const decide::AutoLimitAsked& one : asked) e.tell(one);
    for (const decide::ClassFared& one : fared) {
      e.tell(one);
      if (const auto view = e.auto_limits().view(one.class_name)) views[one.class_name] = *view;
    }
  });
  const std::lock_guard lock(mutex_);
  for (const auto& [name, view] : views) {
    const auto known = all_.find(name);
    if (known == all_.end()) continue;
    note_change(name, known->second, view);
    known->second.view = view;
  }
  return told;
}

void AutoLimitController::note_change(const std::string& name, const Automatic& one, const View& now) const {
  if (one.view.limit.has_value() == now.limit.has_value()) return;
  if (now.limit)
    spdlog::info("class {} is limited so that class {} has what it needs", name, one.rules.protects);
  else if (now.in_vain)
    spdlog::info("class {} is limited no more for a while: the least is not enough for class {}", name,
                 one.rules.protects);
  else
    spdlog::info("class {} is limited no more: class {} is idle", name, one.rules.protects);
}

// Not with the lock: the engine has other things to do, too.
bool AutoLimitController::list_members(Groups& groups) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, one] : all_) {
      groups[name];
      groups[one.rules.protects];
    }
  }
  return engine_.call([&](const Engine& e) {
    for (const auto& [tgid, process] : e.members().processes()) {
      if (!process.managed || process.kernel) continue;
      const auto group = groups.find(process.class_name);
      if (group == groups.end() || group->second.processes.size() >= max_processes) continue;
      group->second.processes.push_back(tgid);
      group->second.threads.insert(group->second.threads.end(), process.threads.begin(), process.threads.end());
    }
  });
}

void AutoLimitController::sample(Automatic& one) const {
  for (auto& [tid, watched] : one.threads) {
    const auto stat = procfs_.stat(tid);
    if (!stat) continue;
    ++watched.seen;
    // A thread that is held at a limit of its own is in that state too.
    watched.waiting += stat->state == 'D' && !shaper_.holds(tid) ? 1 : 0;
  }
}

// Bytes that they have moved since the last time. One that was not there then has begun since, or has come from
// elsewhere.
sys::IoCounters AutoLimitController::moved_of(Automatic& one, const std::vector<pid_t>& processes) const {
  sys::IoCounters out;
  for (const pid_t tgid : processes) {
    const auto io = sys::process_io(procfs_.root(), tgid);
    if (!io) continue;
    sys::IoCounters since;
    const auto [known, is_new] = one.moved.try_emplace(tgid, *io);
    if (is_new) {
      const auto stat = procfs_.stat(tgid);
      if (!stat || stat->start_time < one.looked_ticks) continue;
    } else {
      since = std::exchange(known->second, *io);
    }
    const auto add = [&](std::uint64_t sys::IoCounters::*what) {
      if ((*io).*what > since.*what) out.*what += (*io).*what - since.*what;
    };
    for (const auto what : {&sys::IoCounters::read_chars, &sys::IoCounters::written_chars, &sys::IoCounters::read_bytes,
                            &sys::IoCounters::written_bytes})
      add(what);
  }
  return out;
}

double AutoLimitController::waited_of(Automatic& one, const std::vector<pid_t>& threads, Duration period) {
  double longest = 0;
  std::unordered_map<pid_t, Watched> next;
  for (const pid_t tid : threads) {
    if (next.size() >= max_watched) break;
    Watched& after = next[tid];
    const auto known = one.threads.find(tid);
    if (known != one.threads.end() && known->second.seen > 0)
      longest = std::max(longest, static_cast<double>(known->second.waiting) / known->second.seen);
    if (!delays_) continue;
    if (const auto delay = delays_->block_io(tid)) {
      after.delay = *delay;
      if (known != one.threads.end() && known->second.delay)
        longest = std::max(longest, std::chrono::duration<double>(*delay - *known->second.delay) / period);
    }
  }
  one.threads = std::move(next);
  return std::min(longest, 1.0);
}

Tokens AutoLimitController::counted_of(const std::string& name) const {
  Tokens out = 0;
  for (const decide::Shaping::Account& account : shaper_.accounts(name))
    if (account.device.kind == decide::Device::Kind::disk) out += account.bytes[0] + account.bytes[1] + account.mapped;
  return out;
}

decide::ClassFared AutoLimitController::measure(const std::string& name, Automatic& one, const Group& protects,
                                                const Group& limited, Time now) {
  const Duration period = now - std::exchange(one.looked, now);
  one.alone = limited.processes.empty();
  const double waited = waited_of(one, protects.threads, period);
  const sys::IoCounters moved = moved_of(one, protects.processes), others = moved_of(one, limited.processes);
  one.looked_ticks = sys::ticks_since_boot();
  // While they have no limit, their calls are not counted.
  const Tokens counted = counted_of(name);
  const Tokens by_calls = counted - std::exchange(one.counted, counted);
  std::unordered_set<pid_t> there(protects.processes.begin(), protects.processes.end());
  there.insert(limited.processes.begin(), limited.processes.end());
  std::erase_if(one.moved, [&](const auto& entry) { return !there.contains(entry.first); });
  return {.time = now,
          .class_name = name,
          .period = period,
          .by_calls = by_calls_of(moved),
          .by_disk = by_disk_of(moved),
          .waited = waited,
          .others_calls = by_calls,
          .others_disk = by_disk_of(others)};
}

}  // namespace swapd::daemon
