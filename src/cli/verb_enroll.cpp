#include <memory>

#include "cli/verbs.h"

namespace swapd::cli {

Action declare_enroll(CLI::App& app, Context& context) {
  auto pid = std::make_shared<std::uint32_t>(0);
  add_pid(app, *pid, "The process to supervise");
  app.footer(
      "A program that is started with `swapctl run` is supervised from its first instruction on,\nand needs no "
      "enrolling.");
  return [pid, &context] { return order(context, [&](Client& c) { return c.enroll(static_cast<pid_t>(*pid)); }); };
}

}  // namespace swapd::cli
