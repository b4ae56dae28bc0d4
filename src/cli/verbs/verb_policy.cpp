#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "cli/failure.h"
#include "cli/program.h"
#include "cli/render.h"
#include "cli/verbs/verbs.h"

namespace swapd::cli {
namespace {

// swapd's own judgement, line and exit status: this process becomes it.
int check(const Context& context, const std::string& file) {
  Result<std::string> swapd = find_swapd();
  if (!swapd) return report(*context.err, swapd.error());
  std::string option = "--check-config";
  std::string name = file;
  std::array<char*, 4> argv = {swapd->data(), option.data(), name.empty() ? nullptr : name.data(), nullptr};
  ::execv(argv[0], argv.data());
  return report(*context.err, errno_error("starting " + *swapd));
}

}  // namespace

Action declare_policy(CLI::App& app, Context& context) {
  auto file = std::make_shared<std::string>();
  CLI::App* show_it = app.add_subcommand("show", "The policy in force, with the file and line of each value");
  show_it->fallthrough();
  CLI::App* check_it = app.add_subcommand("check", "Is a policy good? Without a file: all that swapd would read");
  check_it->add_option("FILE", *file, "The policy")->type_name("");
  app.require_subcommand(1, 1);
  app.footer(
      R"(A policy is read when swapd starts, and by `swapctl restart`, which a policy with a mistake stops from doing anything.

Examples:
  swapctl policy check site.toml
  swapctl policy show | grep -v built-in)");
  return [file, check_it, &context] {
    if (check_it->parsed()) return check(context, *file);
    return show(
        context, [](Client& c) { return c.policy(); }, render_policy);
  };
}

}  // namespace swapd::cli
