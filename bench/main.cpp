// swapbench: the workloads of [SWAP04 §5.1, §5.2], and our own. `swapbench WORKLOAD --help` tells the options.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "coscheduling/rank.h"
#include "harness/provenance.h"
#include "harness/workload.h"

namespace swapd::bench {

namespace {

int fail(const std::string& message, int status) {
  std::fprintf(stderr, "swapbench: %s\n", message.c_str());
  return status;
}

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const Workload* workload = find_workload(options.workload);
  if (!options.plot.empty() && workload->plot == nullptr) return fail(options.workload + " has no figure", 2);
  const auto cpus = usable_cpus(options.cpus);
  if (!cpus) return fail(cpus.error().context(), 2);
  catch_interrupts();
  become_harness();
  std::error_code error;
  const Context context{options, Work(calibrate()), *cpus,
                        std::filesystem::read_symlink("/proc/self/exe", error).string()};
  const nlohmann::json origin = provenance({argv, static_cast<std::size_t>(argc)});
  auto lines = workload->run(context);
  const auto left = reap_left_behind();
  if (interrupted()) return fail("interrupted", 1);
  if (!lines) return fail(lines.error().text(), 1);
  for (const std::string& process : left) (void)fail("left behind, and killed now: " + process, 1);
  for (const auto& line : *lines)
    if (line.contains("failure")) (void)fail(line["failure"].get<std::string>(), 1);
  stamp(*lines, origin);
  print(stdout, *lines, options.json);
  if (!options.plot.empty() && !(std::ofstream(options.plot) << workload->plot(*lines))) {
    return fail("cannot write " + options.plot, 1);
  }
  const bool failed = std::ranges::any_of(*lines, [](const auto& line) { return line.contains("failure"); });
  return left.empty() && !failed ? 0 : 1;
}

}  // namespace

}  // namespace swapd::bench

int main(int argc, char** argv) {
  if (argc > 1 && std::strncmp(argv[1], "--role", 6) == 0) return swapd::bench::run_role(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "--cosched-rank") == 0) return swapd::bench::run_cosched_rank(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "--cosched-competitor") == 0)
    return swapd::bench::run_cosched_competitor(argc, argv);
  return swapd::bench::run(argc, argv);
}
