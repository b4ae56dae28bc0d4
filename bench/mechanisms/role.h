// A process of a workload: what it was told, and the words it exchanges with the harness.
#pragma once

#include "harness/shared.h"
#include "harness/work.h"
#include "mechanisms/mechanism.h"
#include "options.h"

namespace swapd::bench {

class Role {
 public:
  Role(RoleOptions options, SharedMemory memory)
      : options_(std::move(options)), memory_(std::move(memory)), work_(options_.rate) {}

  [[nodiscard]] const RoleOptions& options() const { return options_; }
  [[nodiscard]] bool is(const char* role) const { return options_.role == role; }
  [[nodiscard]] Shared& shared() { return *memory_; }
  [[nodiscard]] const Work& work() const { return work_; }
  [[nodiscard]] Peer peer();
  // Says "ready" and sleeps until the gate opens, for all roles at once.
  [[nodiscard]] Status wait_for_go() const;
  [[nodiscard]] Status say(const std::string& line) const { return send_line(options_.control_fd, line); }
  // The next line of the harness; it closes its end to stop the role.
  [[nodiscard]] Result<std::string> hear() const { return receive_line(options_.control_fd); }
  // Calls one() options().iterations times and notes how long each took, from the end of the one before: the sum is the
  // whole run.
  // warm_ups: so often more before; the longest is noted apart (`first_ms`): the servers start among the hogs then.
  [[nodiscard]] Status iterate(const std::function<Status()>& one, int warm_ups);
  void note_sample(std::uint32_t i, double ms);
  // Says "done" and sleeps until it is ended.
  [[nodiscard]] Status finish(std::uint32_t samples);

 private:
  RoleOptions options_;
  SharedMemory memory_;
  Work work_;
};

// The main function of a role.
[[nodiscard]] int run_role(int argc, char** argv);

}  // namespace swapd::bench
