#include <memory>

#include "cli/render.h"
#include "cli/verbs/verbs.h"

namespace swapd::cli {

Action declare_why(CLI::App& app, Context& context) {
  auto pid = std::make_shared<std::uint32_t>(0);
  add_pid(app, *pid, "A thread, or a process: then its blocked threads");
  app.footer(
      "Shows in which call the thread sleeps, for which resource, who could end that, whom swapd favours and on\nwhat "
      "evidence, and further down whom those wait for themselves. The last line of a thread says whether\nits priority "
      "is lent, and if that does nothing, why.\n\nExamples:\n  swapctl why 4711\n  swapctl why --json 4711 | jq "
      "'.threads[].donation'");
  return [pid, &context] {
    return show(
        context, [&](Client& c) { return c.why(static_cast<pid_t>(*pid)); }, render_why);
  };
}

}  // namespace swapd::cli
