#include "cli/render.h"
#include "cli/verbs/verbs.h"

namespace swapd::cli {

Action declare_ps(CLI::App& app, Context& context) {
  app.footer(
      "BASE is a thread's own priority, EFFECTIVE the one it runs with now: they differ while somebody\nlends it his "
      "(LENT BY names the waiters' threads). STATE is one of running, queued (ready, but no CPU),\nblocked, "
      "virtual-runnable (blocked, and who could end the wait can run), delayed, stopped.\n\nExamples:\n  swapctl ps\n"
      "  swapctl ps --json | jq '.threads[] | select(.state == \"virtual-runnable\")'");
  return [&context] {
    return show(
        context, [](Client& c) { return c.processes(); }, render_ps);
  };
}

}  // namespace swapd::cli
