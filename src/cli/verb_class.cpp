#include <memory>

#include "cli/failure.h"
#include "cli/render.h"
#include "cli/verbs.h"
#include "cli/words.h"

namespace swapd::cli {
namespace {

// Both answers are of the same moment, as nearly as matters.
Result<std::string> classes(Client& client, const std::string& only) {
  Result<std::string> policy = client.policy();
  if (!policy) return policy;
  Result<std::string> threads = client.processes();
  if (!threads) return threads;
  try {
    Json all = Json::parse(classes_json(*policy, *threads));
    if (only.empty()) return all.dump();
    for (Json& one : all["classes"])
      if (one.value("name", "") == only) return Json({{"classes", Json::array({one})}, {"one", true}}).dump();
  } catch (const Json::exception&) {
    return failure("cannot read the answers of swapd: is it another version?");
  }
  return user_mistake("no class '" + printable(only) + "': `swapctl class list` has them");
}

}  // namespace

Action declare_class(CLI::App& app, Context& context) {
  auto name = std::make_shared<std::string>();
  CLI::App* list = app.add_subcommand("list", "The classes, and how many programs are in each");
  list->fallthrough();
  CLI::App* one = app.add_subcommand("show", "What a class says, and who is in it");
  one->fallthrough();
  one->add_option("CLASS", *name, "The class")->required()->type_name("");
  app.require_subcommand(1, 1);
  app.footer(
      R"(Classes stand in the policy ([class.NAME]); programs come into one by `run --class`, `enroll --class`, or a rule.

Examples:
  swapctl class list
  swapctl class show desktop)");
  return [name, &context] {
    return show(
        context, [&](Client& c) { return classes(c, *name); }, render_classes);
  };
}

}  // namespace swapd::cli
