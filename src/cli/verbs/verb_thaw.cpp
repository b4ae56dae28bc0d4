#include <memory>

#include "cli/verbs/verbs.h"

namespace swapd::cli {

Action declare_thaw(CLI::App& app, Context& context) {
  auto pid = std::make_shared<std::uint32_t>(0);
  add_pid(app, *pid, "A process that was put away");
  app.footer(
      "While memory thrashes, swapd puts programs away that matter least (`swapctl status` names them).\nOne that is "
      "thawed has its memory back, runs on, and stays for ten minutes.\n\nExample:\n  swapctl thaw 4711");
  return [pid, &context] {
    return order(context, "thawing", [&](Client& c) { return c.thaw(static_cast<pid_t>(*pid)); });
  };
}

}  // namespace swapd::cli
