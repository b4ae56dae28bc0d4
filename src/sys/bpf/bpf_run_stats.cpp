#include "sys/bpf/bpf_run_stats.h"

#include <bpf/bpf.h>
#include <linux/types.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "empty.skel.h"
#include "sys/bpf/skeleton.h"

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
  const std::string what = "the empty BPF programs";
  auto programs = load_skeleton<empty>(what, [](empty& /*opened*/) { return Status(Done{}); });
  if (!programs) return std::move(programs).error();
  if (Status attached = attach_skeleton(**programs, what); !attached) return std::move(attached).error();
  EmptyPrograms out;
  out.programs_ = std::move(programs).value();
  return out;
}

}  // namespace swapd::sys
