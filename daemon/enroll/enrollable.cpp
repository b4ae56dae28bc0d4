#include "enroll/enrollable.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

namespace swapd::daemon {

namespace {

// As comm has them: cut off after 15 characters.
constexpr std::array<std::string_view, 5> pillars{"dbus-daemon", "dbus-broker", "dbus-broker-lau", "systemd-journal",
                                                  "systemd-udevd"};

}  // namespace

Status may_enroll(const sys::Procfs& procfs, pid_t tgid, std::span<const std::string> never) {
  const std::string pid = std::to_string(tgid);
  const auto refuse = [&](const std::string& why) {
    return Error(EINVAL, "process " + pid + " is " + why + ", which swapd never supervises");
  };
  if (tgid == 1) return refuse("the init process");
  const std::string program = procfs.exe(tgid).value_or("");
  if (const auto stat = procfs.stat(tgid); stat && stat->kernel) return refuse("a kernel thread");
  if (!program.empty() && program == procfs.own_exe().value_or("")) return refuse("a part of swapd");
  // Also one of an earlier version, whose program is another file or none by now.
  const std::string file = std::filesystem::path(program).filename().string();
  if (file.starts_with("swapd-guard") || file.starts_with("swapd-attach")) return refuse("a helper of swapd");
  const auto comm = procfs.comm(tgid);
  if (!comm) return Done{};
  if (std::ranges::find(pillars, *comm) != pillars.end()) return refuse("part of the system (" + *comm + ")");
  if (std::ranges::find(never, *comm) != never.end())
    return Error(EINVAL, "process " + pid + " is a " + *comm + ", which the policy protects ([observe] protected)");
  return Done{};
}

}  // namespace swapd::daemon
