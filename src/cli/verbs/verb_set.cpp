#include <memory>

#include "cli/failure.h"
#include "cli/sched_options.h"
#include "cli/verbs/verbs.h"

namespace swapd::cli {

Action declare_set(CLI::App& app, Context& context) {
  auto pid = std::make_shared<std::uint32_t>(0);
  add_pid(app, *pid, "A managed thread, or a process: then all its threads");
  auto priority = std::make_shared<SchedOptions>(app, true);
  app.footer(
      "This is the priority of its own. A donation that is in force stays as it is, and ends as it would have.\n\n"
      "Examples:\n  swapctl set 4711 --fifo 50\n  swapctl set 4711 --nice -5");
  return [pid, priority, &context] {
    const Result<std::optional<AskedPriority>> given = priority->asked();
    if (!given) return report(*context.err, given.error());
    const std::optional<AskedPriority>& base = *given;
    if (!base) return report(*context.err, user_mistake("give one of --nice N, --fifo P, --rr P, --other"));
    return order(context, "setting", [&](Client& c) { return c.set(static_cast<pid_t>(*pid), *base); });
  };
}

}  // namespace swapd::cli
