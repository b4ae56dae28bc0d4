// Automatic limits ([class.NAME.io.auto]): looks how the members of a protected class fare, and has the others of the
// limited one as high a limit as leaves them what they need (decide/shaping/auto_limit.h).
//
// The kernel counts what they move (/proc/PID/io). Their waiting is what delay accounting says, if it is on
// (sys/netlink/delay_accounting.h), or what fifty looks a second see, whichever is more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "decide/shaping/auto_limit.h"
#include "decide/shaping/auto_limit_decider.h"
#include "engine/engine.h"
#include "policy/policy.h"
#include "shaping/shaper.h"
#include "sys/netlink/delay_accounting.h"
#include "sys/procfs/io_counters.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

class AutoLimitController {
 public:
  AutoLimitController(Engine& engine, Shaper& shaper, const sys::Procfs& procfs, const Clock& clock);
  ~AutoLimitController() { stop(); }
  AutoLimitController(const AutoLimitController&) = delete;
  AutoLimitController& operator=(const AutoLimitController&) = delete;

  // The class's rules from now on; not on(): it has no automatic limit any more. Any thread.
  void set(const std::string& class_name, const policy::AutoRules& rules);

  // Stops looking; limits stay as they are. Call before the engine ends, and the log.
  void stop();

  using View = decide::AutoLimitDecider::View;
  [[nodiscard]] std::optional<View> view(const std::string& class_name) const;

 private:
  // A thread of the protected ones, in this period.
  struct Watched {
    unsigned seen = 0, waiting = 0;
    std::optional<Duration> delay;  // in all, as of the last period's end
  };
  struct Automatic {
    policy::AutoRules rules;
    View view;
    std::unordered_map<pid_t, Watched> threads;
    std::unordered_map<pid_t, sys::IoCounters> moved;  // by process, of both classes, as of the last period's end
    decide::Tokens counted = 0;                        // of the limited class's disks, then
    Time looked{};
    std::uint64_t looked_ticks = 0;  // the same since boot
    bool alone = true;               // the limited class has no members: there is nothing to find
  };
  struct Group {
    std::vector<pid_t> processes, threads;
  };
  using Groups = std::map<std::string, Group, std::less<>>;  // by class

  void run(const std::stop_token& stop);
  [[nodiscard]] bool list_members(Groups& groups);
  void sample(Automatic& one) const;
  // How the programs of both classes have fared since the last call.
  [[nodiscard]] decide::ClassFared measure(const std::string& name, Automatic& one, const Group& protects,
                                           const Group& limited, Time now);
  // Asks the engine's decider; without the lock. False: the engine has ended.
  bool tell(const std::vector<decide::AutoLimitAsked>& asked, const std::vector<decide::ClassFared>& fared);
  void note_change(const std::string& name, const Automatic& one, const View& now) const;
  [[nodiscard]] sys::IoCounters moved_of(Automatic& one, const std::vector<pid_t>& processes) const;
  [[nodiscard]] double waited_of(Automatic& one, const std::vector<pid_t>& threads, Duration period);
  [[nodiscard]] decide::Tokens counted_of(const std::string& name) const;

  Engine& engine_;
  Shaper& shaper_;
  const sys::Procfs& procfs_;
  const Clock& clock_;
  std::optional<sys::TaskDelays> delays_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, Automatic> all_;
  std::vector<decide::AutoLimitAsked> asked_;  // not told yet
  std::jthread thread_;                        // last; none before there is something to do
};

}  // namespace swapd::daemon
