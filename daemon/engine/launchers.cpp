#include "engine/launchers.h"

#include <algorithm>
#include <array>

namespace swapd::daemon {

namespace {
constexpr int max_generations = 4;
// Open MPI's, MPICH's and Intel's (Hydra), Slurm's on the node, PyTorch's. Debian has several under names of their own.
constexpr std::array<std::string_view, 15> launchers = {
    "mpirun",       "mpiexec",       "mpirun.openmpi", "mpiexec.openmpi", "orterun",
    "orted",        "prterun",       "prted",          "mpiexec.hydra",   "hydra_pmi_proxy",
    "mpirun.mpich", "mpiexec.mpich", "slurmstepd",     "torchrun",        "prte"};
}  // namespace

bool is_launcher(std::string_view comm) { return std::ranges::find(launchers, comm) != launchers.end(); }

ThreadId launcher_of(const sys::Procfs& procfs, pid_t pid) {
  for (int i = 0; i < max_generations; ++i) {
    const auto stat = procfs.stat(pid);
    if (!stat || stat->ppid <= 1) break;
    pid = stat->ppid;
    const auto comm = procfs.comm(pid);
    if (comm && is_launcher(*comm)) return procfs.thread_id(pid).value_or(ThreadId{});
  }
  return {};
}

}  // namespace swapd::daemon
