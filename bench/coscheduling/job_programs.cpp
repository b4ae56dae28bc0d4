#include "coscheduling/job_programs.h"

#include <unistd.h>

#include <filesystem>

#include "apps/apps.h"

namespace swapd::bench {
namespace {

bool gives_up_its_cpu(const JobPlan& plan) { return plan.under == "yield-when-idle" || plan.under == "giving"; }

// Built beside swapbench; installed, in libexec.
std::string built_program(const std::string& name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {".", "../libexec/swapd"})
    if (const auto path = (self / place / name).lexically_normal(); ::access(path.c_str(), X_OK) == 0) return path;
  return {};
}

std::vector<std::string> openmpi_words(const JobPlan& plan, const JobPlaces& places) {
  // Open MPI yields by itself where it knows of too few CPUs: both ways are said.
  const std::string yield = gives_up_its_cpu(plan) ? "1" : "0";
  return {"/usr/bin/env",
          "OMPI_ALLOW_RUN_AS_ROOT=1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "TMPDIR=" + places.temp,
          "OMPI_MCA_mpi_yield_when_idle=" + yield,
          path_of("mpirun.openmpi"),
          "--oversubscribe",
          "--bind-to",
          "none",
          "-np",
          std::to_string(plan.ranks),
          built_program("mpi_rank.openmpi"),
          places.area};
}

std::vector<std::string> mpich_words(const JobPlan& plan, const JobPlaces& places) {
  return {"/usr/bin/env", "TMPDIR=" + places.temp,    path_of("mpirun.mpich"),
          "-np",          std::to_string(plan.ranks), built_program("mpi_rank.mpich"),
          places.area};
}

std::vector<std::string> openmp_words(const JobPlan& plan, const JobPlaces& places) {
  std::vector<std::string> words = {"/usr/bin/env", "OMP_DYNAMIC=false",
                                    "OMP_NUM_THREADS=" + std::to_string(plan.ranks)};
  if (plan.under == "passive" || plan.under == "giving") {
    words.emplace_back("OMP_WAIT_POLICY=passive");
  } else {
    words.emplace_back("OMP_WAIT_POLICY=active");
    words.emplace_back("GOMP_SPINCOUNT=infinite");
  }
  words.push_back(built_program("openmp_team"));
  words.push_back(places.area);
  return words;
}

}  // namespace

std::vector<std::string> job_words(const JobPlan& plan, const JobPlaces& places, int index) {
  if (plan.program == "openmpi") return openmpi_words(plan, places);
  if (plan.program == "mpich") return mpich_words(plan, places);
  if (plan.program == "openmp") return openmp_words(plan, places);
  return {places.self, "--cosched-rank", places.area, std::to_string(index)};
}

int job_processes(const JobPlan& plan) { return plan.program == "own" ? plan.ranks : 1; }

std::string receive_under(const JobPlan& plan) {
  if (plan.under == "yield-when-idle") return "yield";
  return plan.under == "passive" || plan.under == "giving" ? "block" : plan.receive;
}

bool job_knows(const std::string& program, const std::string& under) {
  if (under == "yield-when-idle") return program == "own" || program == "openmpi";
  if (under == "passive") return program == "own" || program == "openmp";
  return true;
}

std::optional<std::string> missing_job_program(const std::string& program) {
  const auto none = [&](const std::string& what, const std::string& packages) {
    return "cosched: --program " + program + ": " + what + " is not there (Debian: " + packages + ")";
  };
  if (program == "openmp" && built_program("openmp_team").empty()) return none("openmp_team", "gcc, and build again");
  for (const char* mpi : {"openmpi", "mpich"}) {
    if (program != mpi) continue;
    const std::string packages = program == "openmpi" ? "openmpi-bin, libopenmpi-dev" : "mpich, libmpich-dev";
    if (path_of("mpirun." + program).empty()) return none("mpirun." + program, packages);
    if (built_program("mpi_rank." + program).empty())
      return none("mpi_rank." + program, packages + ", and build again");
  }
  return std::nullopt;
}

}  // namespace swapd::bench
