#include "cli/render.h"
#include "cli/verbs/verbs.h"

namespace swapd::cli {

Action declare_status(CLI::App& app, Context& context) {
  app.footer("Example:\n  swapctl status --json | jq .donations_total");
  return [&context] {
    return show(
        context, [](Client& c) { return c.status(); }, render_status);
  };
}

}  // namespace swapd::cli
