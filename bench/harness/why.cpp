#include "harness/why.h"

#include <unistd.h>

#include "harness/process.h"
#include "harness/workload.h"

namespace swapd::bench {

namespace {

void collect(const nlohmann::json& waits, std::set<pid_t>& pids) {
  if (!waits.is_array()) return;
  for (const auto& wait : waits) {
    if (!wait.is_object() || !wait.contains("providers")) continue;
    for (const auto& provider : wait["providers"]) {
      pids.insert(provider.value("pid", 0));
      if (provider.contains("waiting_for")) collect(provider["waiting_for"], pids);
    }
  }
}

}  // namespace

Why read_why(nlohmann::json json, const std::set<pid_t>& wanted) {
  Why why;
  std::set<pid_t> pids;
  if (json.contains("threads") && json["threads"].is_array()) {
    for (const auto& thread : json["threads"]) {
      if (!thread.contains("waiting_for")) continue;
      collect(thread["waiting_for"], pids);
      for (const auto& wait : thread["waiting_for"]) {
        if (wait.contains("providers")) why.candidates += static_cast<int>(wait["providers"].size());
      }
    }
  }
  for (const pid_t pid : wanted) why.named += static_cast<int>(pids.count(pid));
  why.json = std::move(json);
  return why;
}

Result<Why> ask_why(const Daemon& daemon, pid_t pid, const std::set<pid_t>& wanted, int tries) {
  Why best;
  for (int i = 0; i < tries && !interrupted(); ++i) {
    auto json = daemon.ask({"why", std::to_string(pid)});
    if (!json) return json.error();
    Why why = read_why(std::move(*json), wanted);
    if (i == 0 || why.named > best.named) best = std::move(why);
    if (best.named == static_cast<int>(wanted.size())) break;
  }
  return best;
}

Status wait_for_iteration(Team& team, std::uint32_t n) {
  const auto until = std::chrono::steady_clock::now() + team.limit();
  while (team.shared().waiting < n) {
    if (interrupted()) return Error(EINTR, "interrupted");
    if (std::chrono::steady_clock::now() > until) return Error(ETIMEDOUT, "the client does not get on");
    ::usleep(2000);
  }
  return Done{};
}

}  // namespace swapd::bench
