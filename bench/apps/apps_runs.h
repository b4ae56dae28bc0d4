// What `apps` measures, run by run or in turns.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/apps.h"
#include "harness/process.h"
#include "harness/rates.h"
#include "harness/team.h"
#include "mechanisms/role.h"

namespace swapd::bench {

struct Run {
  double throughput = 0;
  double load_cpu_s = 0;                       // server and load generator
  double swapd_share = 0, programs_share = 0;  // of the load's CPU time
  RateCost cost;                               // in turns
};

// front: a program that starts it, with its arguments.
[[nodiscard]] Spawn app_spawn(const Context& context, std::vector<std::string> front,
                              const std::vector<std::string>& words);
// A load generator that is the important one (--important client).
void make_important(Spawn& generator, const Options& options);
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

// One server under one load that goes on, while swapd comes, enrolls both, and leaves again: windows of each
// configuration, each first in turn. The machine's speed and where the scheduler puts a server and its clients change
// throughput by a third and more, from one second to the next: short windows that follow each other have most of that
// in common, and many of them the rest. Under --important client, hand-set and hogs are possible too.
struct Turns {
  std::map<std::string, std::vector<Run>> runs;  // by under
  // The programs in a further window, in which the kernel measured them: their part of the load's CPU time, and of one
  // CPU.
  double programs_share = 0, programs_of_a_cpu = 0;
};
[[nodiscard]] Result<Turns> take_turns(const Context& context, App& app, double guess, int hogs);

}  // namespace swapd::bench
