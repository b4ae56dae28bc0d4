#include <memory>

#include "cli/verbs/verbs.h"

namespace swapd::cli {

Action declare_release(CLI::App& app, Context& context) {
  auto pid = std::make_shared<std::uint32_t>(0);
  add_pid(app, *pid, "A managed process");
  app.footer(
      "The process gets its own priority back, and neither lends nor borrows from then on.\nThe program runs on "
      "undisturbed.\n\nExample:\n  swapctl release 4711");
  return [pid, &context] {
    return order(context, "releasing", [&](Client& c) { return c.release(static_cast<pid_t>(*pid)); });
  };
}

}  // namespace swapd::cli
