#include "cli/verbs/verbs.h"

namespace swapd::cli {

Action declare_restart(CLI::App& app, Context& context) {
  app.footer(R"(swapd ends, in good order, and begins again with the program and the policy that are there now; it keeps
its process id. What is managed remains so, with all that swapd has learnt, and no call is lost meanwhile. Where
the new program does not run, or refuses the policy, nothing is changed.

Example:
  apt install swapd && swapctl restart)");
  return [&context] { return order(context, "restarting", [](Client& c) { return c.restart(); }); };
}

}  // namespace swapd::cli
