#include "cli/verbs/verbs.h"

namespace swapd::cli {

Action declare_pause(CLI::App& app, Context& context) {
  app.footer(
      R"(What is lent is given back at once. swapd goes on observing and learning, and `why` goes on telling; `swapctl resume`,
or a swapd that begins again, lends anew. For the question whether swapd is what makes the difference.

Example:
  swapctl pause; time make check; swapctl resume)");
  return [&context] { return order(context, "pausing", [](Client& c) { return c.pause(); }); };
}

Action declare_resume(CLI::App& app, Context& context) {
  app.footer("Example:\n  swapctl resume");
  return [&context] { return order(context, "resuming", [](Client& c) { return c.resume(); }); };
}

}  // namespace swapd::cli
