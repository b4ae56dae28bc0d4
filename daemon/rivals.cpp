#include "rivals.h"

#include <array>
#include <fstream>
#include <string_view>

namespace swapd::daemon {

std::vector<std::string> find_rivals(const sys::Procfs& procfs) {
  static constexpr std::array<std::string_view, 6> daemons = {"ananicy-cpp", "ananicy",  "system76-schedu",
                                                              "gamemoded",   "verynice", "auto-nice"};
  std::vector<std::string> out;
  for (const pid_t pid : procfs.processes()) {
    const auto comm = procfs.comm(pid);
    if (!comm) continue;
    for (const std::string_view rival : daemons)
      if (*comm == rival) out.push_back(*comm + " (pid " + std::to_string(pid) + ") also sets priorities");
  }
  std::ifstream ext("/sys/kernel/sched_ext/state");
  if (std::string state; std::getline(ext, state) && state == "enabled")
    out.emplace_back("a sched_ext scheduler is active: it may not heed nice values");
  return out;
}

}  // namespace swapd::daemon
