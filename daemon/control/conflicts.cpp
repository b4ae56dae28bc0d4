#include "control/conflicts.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

namespace swapd::daemon {
namespace {

constexpr std::chrono::minutes looked_every{1};
constexpr Duration fresh = std::chrono::seconds(1);

struct Rival {
  std::string_view comm;
  std::string_view what;
};
// By the name that the kernel keeps: 15 bytes.
constexpr std::array<Rival, 6> daemons = {{
    {"ananicy-cpp", "sets priorities by name, again and again: exempt the programs that swapd manages"},
    {"ananicy", "sets priorities by name, again and again: exempt the programs that swapd manages"},
    {"system76-schedu", "sets priorities by name and by what is in the foreground"},
    {"gamemoded", "sets the priorities of games"},
    {"verynice", "lowers the priorities of what computes for long"},
    {"auto-nice", "lowers the priorities of what computes for long"},
}};

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<long long> number(const std::string& path) {
  const auto line = first_line(path);
  if (!line || line->empty() || line->size() > 18 || line->find_first_not_of("-0123456789") != std::string::npos)
    return std::nullopt;
  return std::strtoll(line->c_str(), nullptr, 10);
}

void log_changes(const std::vector<std::string>& before, const std::vector<std::string>& now) {
  for (const std::string& line : now)
    if (std::ranges::find(before, line) == before.end()) spdlog::warn("{}", line);
  for (const std::string& line : before)
    if (std::ranges::find(now, line) == now.end()) spdlog::info("no more: {}", line);
}

}  // namespace

SchedulingConflicts find_conflicts(const sys::Procfs& procfs, const policy::DonationPolicy& policy,
                                   const std::string& sys) {
  SchedulingConflicts out;
  for (const pid_t pid : procfs.processes()) {
    const auto comm = procfs.comm(pid);
    if (!comm) continue;
    const auto rival = std::ranges::find(daemons, std::string_view(*comm), &Rival::comm);
    if (rival == daemons.end()) continue;
    constexpr std::size_t most = 8;  // any user may call a thousand programs so
    if (out.rivals.size() >= most) break;
    out.rivals.push_back(*comm + " (pid " + std::to_string(pid) + ") " + std::string(rival->what));
  }
  if (first_line(sys + "/kernel/sched_ext/state") == "enabled") {
    const std::string name = first_line(sys + "/kernel/sched_ext/root/ops").value_or("");
    out.rivals.push_back("a sched_ext scheduler is active" + (name.empty() ? "" : " (" + name + ")") +
                         ": it may not heed nice values; real-time priorities count as ever");
  }
  const std::string kernel = procfs.root() + "/sys/kernel/";
  if (number(kernel + "sched_autogroup_enabled") == 1 && !policy.group_action)
    out.settings.emplace_back(
        "kernel.sched_autogroup_enabled is 1 and the policy says group_action = false: a nice value that is lent to "
        "another session does nothing");
  const auto runtime = number(kernel + "sched_rt_runtime_us");
  const auto period = number(kernel + "sched_rt_period_us").value_or(1'000'000);
  if (runtime && policy.realtime && *runtime < 0 && policy.ceiling_share >= 1)
    out.settings.emplace_back(
        "kernel.sched_rt_runtime_us is -1 and the policy says ceiling_share = 1: a real-time loan may keep ordinary "
        "programs off a CPU for as long as it computes");
  if (runtime && policy.realtime && *runtime >= 0 && period > 0 && *runtime * 2 < period)
    out.settings.push_back("kernel.sched_rt_runtime_us leaves real-time programs " +
                           std::to_string(*runtime * 100 / period) +
                           " % of a CPU: real-time loans help no more than that");
  return out;
}

ConflictMonitor::ConflictMonitor(sd_event* loop, const sys::Procfs& procfs, const policy::DonationPolicy& policy,
                                 std::function<void()> also)
    : procfs_(procfs), policy_(policy), also_(std::move(also)), timer_(loop, [this] { look(); }) {
  look();
  if (const Status set = timer_.repeat(looked_every); !set)
    spdlog::error("{}; conflicts are looked for when they are asked for only", set.error().text());
}

const SchedulingConflicts& ConflictMonitor::now() {
  if (SteadyClock().now() - looked_ >= fresh) look();
  return seen_;
}

void ConflictMonitor::look() {
  if (also_) also_();
  SchedulingConflicts found = find_conflicts(procfs_, policy_);
  looked_ = SteadyClock().now();
  log_changes(seen_.rivals, found.rivals);
  log_changes(seen_.settings, found.settings);
  seen_ = std::move(found);
}

}  // namespace swapd::daemon
