#include "program_cost.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/fd.h"

namespace swapd::bench {

namespace {

// The numbers of its programs, from the descriptors of the programs or of their attachments.
std::set<std::uint32_t> program_ids(pid_t pid) {
  std::set<std::uint32_t> ids;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fdinfo", error)) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      constexpr std::string_view label = "prog_id:";
      if (line.starts_with(label)) ids.insert(static_cast<std::uint32_t>(std::stoul(line.substr(label.size()))));
    }
  }
  return ids;
}

// bpf(2); libbpf is swapd's business.
long bpf(bpf_cmd command, bpf_attr& attr) { return ::syscall(SYS_bpf, command, &attr, sizeof attr); }

}  // namespace

std::vector<ProgramCost> program_costs(pid_t swapd) {
  std::vector<ProgramCost> costs;
  for (const std::uint32_t id : program_ids(swapd)) {
    bpf_attr by_id{};
    by_id.prog_id = id;
    const Fd program(static_cast<int>(bpf(BPF_PROG_GET_FD_BY_ID, by_id)));
    bpf_prog_info info{};
    bpf_attr about{};
    about.info.bpf_fd = static_cast<std::uint32_t>(program.get());
    about.info.info_len = sizeof info;
    about.info.info = reinterpret_cast<std::uint64_t>(&info);
    if (!program || bpf(BPF_OBJ_GET_INFO_BY_FD, about) != 0) continue;
    costs.push_back({info.name, info.run_cnt, static_cast<double>(info.run_time_ns)});
  }
  return costs;
}

}  // namespace swapd::bench
