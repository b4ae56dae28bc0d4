// Any bytes are a scenario or one printable line that says why not; each point of a sweep is a scenario too. A small
// one is run, for few cycles.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "simulate/simulator.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace swapd::simulate;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = parse_scenario(text, "fuzz.toml");
  if (!parsed) {
    const std::string& line = parsed.error().context();
    if (!line.starts_with("fuzz.toml:") || line.find('\n') != std::string::npos || line.size() > 1000) std::abort();
    return 0;
  }
  auto point = at_point(*parsed, 0, "fuzz.toml");
  if (!point) std::abort();
  double rates = 0;
  for (const Job& job : point->jobs) rates += job.messages + job.switches + job.blocks;
  if (point->nodes > 8 || rates > 10 || point->processes_on(0) > 20) return 0;
  point->cycles = 20;
  point->warmup = 0;
  const Scheduler& scheduler = point->scheduler;
  for (const Job& job : point->jobs)
    if (job.grain > 0 && job.grain < 0.1) return 0;
  if (scheduler.slice > 0 && scheduler.slice < 0.1) return 0;
  const Outcome outcome = Simulator(*point).run();
  for (const JobOutcome& job : outcome.jobs)
    if (!(job.share >= 0 && job.share <= 1.000001)) std::abort();
  return 0;
}
