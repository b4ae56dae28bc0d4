#include "sys/memory/memory_stat.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "sys/kernel_file.h"

namespace swapd::sys {

namespace parse {

namespace {

// Calls with each line; ends where that says true.
template <typename Take>
void each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (take(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::optional<std::int64_t> number_of(std::string_view text, std::string_view key) {
  std::optional<std::int64_t> found;
  each_line(text, [&](std::string_view line) {
    if (!line.starts_with(key)) return false;
    line.remove_prefix(key.size());
    if (line.starts_with(':')) line.remove_prefix(1);
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == 0 || begin == std::string_view::npos) return false;  // a longer key, or nothing
    line.remove_prefix(begin);
    std::int64_t number = 0;
    const auto [end, bad] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (bad != std::errc{}) return false;
    constexpr std::int64_t kib = 1024;
    found = std::string_view(end, line.data() + line.size()).starts_with(" kB") ? number * kib : number;
    return true;
  });
  return found;
}

std::optional<MemoryGroup> memory_group(std::string_view text) {
  std::optional<MemoryGroup> found;
  each_line(text, [&](std::string_view line) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) return false;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty() && !found) found = MemoryGroup{.v1 = false, .path = path};
    while (!controllers.empty()) {
      const std::size_t end = std::min(controllers.find(','), controllers.size());
      if (controllers.substr(0, end) == "memory") found = MemoryGroup{.v1 = true, .path = path};
      controllers.remove_prefix(std::min(end + 1, controllers.size()));
    }
    return found && found->v1;
  });
  if (found && found->path == "/") found->path.clear();
  return found;
}

bool all_compressed(std::string_view swaps) {
  bool first = true, any = false, all = true;
  each_line(swaps, [&](std::string_view line) {
    if (std::exchange(first, false) || line.empty()) return false;
    any = true;
    all = all && line.starts_with("/dev/zram");
    return false;
  });
  return any && all;
}

}  // namespace parse

namespace {

std::optional<std::int64_t> whole(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, bad] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (bad != std::errc{}) return std::nullopt;  // "max"
  return number;
}

std::uint64_t count_of(std::string_view text, std::string_view key) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(parse::number_of(text, key).value_or(0), 0));
}

}  // namespace

void leave_to_groups_within(const std::map<std::string, MemoryState>& groups,
                            std::map<std::string, MemoryCounters>& moved) {
  const auto whole = moved;
  for (const auto& [name, counters] : whole) {
    const MemoryState& state = groups.at(name);
    if (name.empty() || state.room > state.limit / 8) continue;
    std::string above = name;
    do above.resize(above.rfind('/'));
    while (!above.empty() && !groups.contains(above));
    if (const auto outer = moved.find(above); outer != moved.end()) outer->second = outer->second - counters;
  }
}

Result<MemoryState> MemoryStat::machine() const {
  const auto counters = read_text(proc_root_ + "/vmstat");
  if (!counters) return counters.error();
  const auto memory = read_text(proc_root_ + "/meminfo");
  if (!memory) return memory.error();
  MemoryState out;
  out.counters = {.refaults = count_of(*counters, "workingset_refault_anon"),
                  .in = count_of(*counters, "pswpin"),
                  .out = count_of(*counters, "pswpout")};
  out.room = parse::number_of(*memory, "MemAvailable").value_or(0);
  out.limit = parse::number_of(*memory, "MemTotal").value_or(0);
  out.swap_room = parse::number_of(*memory, "SwapFree").value_or(0);
  out.swap_total = parse::number_of(*memory, "SwapTotal").value_or(0);
  return out;
}

// A group of v1, and one of v2 before Linux 6.13, does not count what is swapped; what comes back to it does.
std::optional<MemoryState> MemoryStat::group(const std::string& group, const MemoryState& machine) const {
  const std::string v1 = cgroups_ + "/memory" + group;
  std::error_code error;
  const bool is_v1 = std::filesystem::exists(v1 + "/memory.limit_in_bytes", error);
  const std::string unified = std::filesystem::exists(cgroups_ + "/unified", error) ? cgroups_ + "/unified" : cgroups_;
  const std::string directory = is_v1 ? v1 : unified + group;
  const auto limit = whole(directory + (is_v1 ? "/memory.limit_in_bytes" : "/memory.max"));
  const auto usage = whole(directory + (is_v1 ? "/memory.usage_in_bytes" : "/memory.current"));
  const auto stat = read_text(directory + "/memory.stat");
  if (!limit || !usage || !stat || *limit >= machine.limit) return std::nullopt;
  const std::string_view whole_tree = is_v1 ? "total_" : "";
  const auto key = [&](std::string_view name) { return std::string(whole_tree) + std::string(name); };
  MemoryState out;
  out.counters.refaults = count_of(*stat, key("workingset_refault_anon"));
  const auto in = parse::number_of(*stat, key("pswpin")), swapped_out = parse::number_of(*stat, key("pswpout"));
  out.counters.in = in ? static_cast<std::uint64_t>(*in) : out.counters.refaults;
  out.counters.out = swapped_out ? static_cast<std::uint64_t>(*swapped_out) : machine.counters.out;
  const auto files = parse::number_of(*stat, key("inactive_file")).value_or(0) +
                     parse::number_of(*stat, key("active_file")).value_or(0);
  out.room = std::max<std::int64_t>(*limit - *usage + files / 2, 0);
  out.limit = *limit;
  out.swap_room = machine.swap_room;
  out.swap_total = machine.swap_total;
  if (is_v1) {
    const auto both = whole(directory + "/memory.memsw.limit_in_bytes"),
               used = whole(directory + "/memory.memsw.usage_in_bytes");
    if (both && used) out.swap_room = std::clamp<std::int64_t>(*both - *used, 0, machine.swap_room);
  } else if (const auto most = whole(directory + "/memory.swap.max")) {
    const auto used = whole(directory + "/memory.swap.current").value_or(0);
    out.swap_room = std::clamp<std::int64_t>(*most - used, 0, machine.swap_room);
  }
  return out;
}

std::string MemoryStat::group_of(pid_t tgid) const {
  const auto text = read_text(proc_root_ + "/" + std::to_string(tgid) + "/cgroup");
  if (!text) return "";
  const auto group = parse::memory_group(*text);
  return group ? group->path : "";
}

// Measured where three programs need 300 MiB of 256: with 40 000 pages a second that came back from compressed memory
// 1.4 of two CPUs did nothing else, which is 35 us a page: compressing, expanding, the faults, and the search for pages
// to put out. A page of an SSD's readahead takes 10 to 30, of a busy or a virtual disk a hundred and more, and the rest
// is the same.
Duration MemoryStat::page_cost() const {
  constexpr Duration compressed = std::chrono::microseconds(25), disk = std::chrono::microseconds(125);
  const auto swaps = read_text(proc_root_ + "/swaps");
  return swaps && parse::all_compressed(*swaps) ? compressed : disk;
}

}  // namespace swapd::sys
