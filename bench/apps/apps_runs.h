// What `apps` measures, run by run or in turns.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "apps/apps.h"
#include "harness/process.h"
#include "harness/team.h"
#include "mechanisms/role.h"

namespace swapd::bench {

struct Run {
  double throughput = 0;
  double load_cpu_s = 0;  // server and load generator
  double swapd_share = 0, programs_share = 0;
};

// front: a program that starts it, with its arguments.
[[nodiscard]] Spawn app_spawn(const Context& context, std::vector<std::string> front,
                              const std::vector<std::string>& words);
// Which answers.
[[nodiscard]] Result<Child> start_server(const Context& context, const App& app, const std::vector<std::string>& front,
                                         const std::string& log);

// What the load, swapd and its programs have used from here on.
class Usage {
 public:
  Usage(std::function<double()> load_cpu_s, const Daemon* daemon);
  void add_to(Run& run) const;

 private:
  [[nodiscard]] double programs_s() const;
  std::function<double()> load_cpu_s_;
  const Daemon* daemon_;
  double load_ = 0, swapd_ = 0, programs_ = 0;
};

// One server under one load that goes on, while swapd comes, takes them on, and leaves again: pairs of windows, with it
// and without, either first in turn. The machine's speed and where the scheduler puts a server and its clients change
// throughput by a third and more, from one second to the next: short windows that follow each other have most of that
// in common, and many of them the rest.
struct Turns {
  std::vector<Run> vanilla, swapd;
  double programs_share = 0;  // of a further window, in which the kernel measured the programs
};
[[nodiscard]] Result<Turns> take_turns(const Context& context, App& app, double guess);

}  // namespace swapd::bench
