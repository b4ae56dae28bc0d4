#include <memory>

#include "cli/failure.h"
#include "cli/render.h"
#include "cli/verbs/verbs.h"
#include "cli/words.h"

namespace swapd::cli {

namespace {

// A line of a newer swapd that has other fields than expected is shown as it came.
std::string readable(const std::string& line, const Paint& paint) {
  try {
    return render_event(line, paint);
  } catch (const Json::exception&) {
    return printable(line);
  }
}

}  // namespace

Action declare_events(CLI::App& app, Context& context) {
  auto count = std::make_shared<std::uint64_t>(0);
  app.add_option("--count", *count, "End after N events")
      ->check(CLI::Range(std::uint64_t{1}, UINT64_MAX).description(""))
      ->type_name("N");
  app.add_flag("--follow")->description("What it does anyway");
  app.footer(
      "Follows until interrupted. A reader that is too slow loses events, never swapd: a line of type "
      "events-lost\nsays "
      "how many.\n\nExamples:\n  swapctl events\n  swapctl events --json | jq 'select(.type == \"donation-begun\")'");
  return [count, &context] {
    Result<Client> client = Client::connect(context.socket);
    if (!client) return report(*context.err, client.error());
    std::uint64_t seen = 0;
    bool written = true;
    const Paint paint = paint_of(context);
    const Status followed = client->follow([&](const std::string& line) {
      *context.out << (context.json ? line : readable(line, paint)) << std::endl;
      written = static_cast<bool>(*context.out);
      return written && ++seen != *count;
    });
    if (!followed) return report(*context.err, followed.error());
    return written ? exit_done : report(*context.err, failure("cannot write the events: is the disk full?"));
  };
}

}  // namespace swapd::cli
