#include "sys/bpf/bpf_run_stats.h"

#include <bpf/bpf.h>
#include <linux/types.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "empty.skel.h"
#include "sys/bpf/bpf_errors.h"

namespace swapd::sys {

namespace {

std::set<std::uint32_t> program_ids(pid_t pid) {
  std::set<std::uint32_t> ids;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fdinfo", gone)) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      constexpr std::string_view label = "prog_id:";
      if (line.starts_with(label)) ids.insert(static_cast<std::uint32_t>(std::stoul(line.substr(label.size()))));
    }
  }
  return ids;
}

}  // namespace

Result<Fd> measure_bpf_costs() {
  Fd fd(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!fd) return errno_error("measuring what BPF programs cost");
  return fd;
}

std::vector<BpfProgramCost> bpf_costs(pid_t pid) {
  std::vector<BpfProgramCost> costs;
  for (const std::uint32_t id : program_ids(pid)) {
    const Fd program(bpf_prog_get_fd_by_id(id));
    bpf_prog_info info{};
    __u32 size = sizeof info;
    if (program && bpf_obj_get_info_by_fd(program.get(), &info, &size) == 0)
      costs.push_back({info.name, info.run_cnt, Duration(static_cast<std::int64_t>(info.run_time_ns))});
  }
  return costs;
}

Result<EmptyPrograms> EmptyPrograms::attach() {
  const FirstWarning warning;
  const std::shared_ptr<empty> programs(empty__open_and_load(), empty__destroy);
  if (!programs) return FirstWarning::error(errno, "loading the empty BPF programs");
  if (const int failed = empty__attach(programs.get()); failed != 0)
    return FirstWarning::error(-failed, "attaching the empty BPF programs");
  EmptyPrograms out;
  out.programs_ = programs;
  return out;
}

}  // namespace swapd::sys
