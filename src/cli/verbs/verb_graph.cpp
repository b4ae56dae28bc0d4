#include <memory>

#include "cli/render.h"
#include "cli/verbs/verbs.h"
#include "cli/words.h"

namespace swapd::cli {

Action declare_graph(CLI::App& app, Context& context) {
  auto format = std::make_shared<std::string>("dot");
  app.add_option("--format", *format, "dot (the default) or json")
      ->check(CLI::IsMember(std::vector<std::string>(graph_words.begin(), graph_words.end())).description(""))
      ->type_name("FORMAT");
  app.footer(
      "Boxes are threads, ellipses resources. A solid arrow says: waits for; a dashed one: can be provided by, with "
      "the\nconfidence.\n\nExample:\n  swapctl graph --format dot | dot -Tsvg > waits.svg");
  return [format, &context] {
    if (*format == "json") context.json = true;
    return show(
        context, [](Client& c) { return c.graph(); },
        [](const std::string& json, const Paint&) { return render_dot(json); });
  };
}

}  // namespace swapd::cli
