#include "sys/sched/freezer.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sys/kernel_file.h"
#include "sys/procfs/procfs_path.h"
#include "sys/sched/freezer_group.h"

namespace swapd::sys {
namespace parse {

FreezerGroups freezer_groups(std::string_view text) {
  FreezerGroups out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view path = line.substr(second + 1);
    // A group of another namespace ("/../x") is nowhere to be found here; "/..x" is a group as others.
    if (path.empty() || path.front() != '/' || path == "/.." || path.starts_with("/../")) continue;
    const std::string group(path == "/" ? "" : path);
    const std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    if (line.starts_with("0::"))
      out.v2 = group;
    else if (controllers.find(",freezer,") != std::string::npos)
      out.v1 = group;
  }
  return out;
}

}  // namespace parse

Freezer::Freezer(std::string proc_root, std::string cgroups)
    : proc_root_(std::move(proc_root)), v1_(cgroups + "/freezer"), v2_(cgroups) {
  // Beside hierarchies of v1 it is one of them.
  if (::access((cgroups + "/unified/cgroup.procs").c_str(), F_OK) == 0) v2_ += "/unified";
}

bool Freezer::group_freezes(const std::string& directory, bool v2) {
  const auto [known, is_new] = known_.try_emplace(directory, false);
  if (!is_new) return known->second;
  const std::string said = read_text(directory + (v2 ? "/cgroup.freeze" : "/freezer.state")).value_or("");
  return known->second = v2 ? said.starts_with('1') : said.starts_with("FR");  // FREEZING, FROZEN
}

bool Freezer::freezes(pid_t tid) {
  const auto groups = parse::freezer_groups(read_text(ProcPath(proc_root_, tid, "cgroup").c_str()).value_or(""));
  const auto without_ours = [](std::string path) {
    if (FreezerGroup::is_own(path)) path.erase(path.rfind('/'));
    return path;
  };
  const std::string v1 = without_ours(groups.v1.value_or(""));
  if (!v1.empty() && group_freezes(v1_ + v1, false)) return true;
  // A group of v2 says only what was asked of it; one of v1, what holds for it.
  for (std::string path = without_ours(groups.v2.value_or("")); path.size() > 1; path.erase(path.rfind('/')))
    if (group_freezes(v2_ + path, true)) return true;
  return false;
}

}  // namespace swapd::sys
