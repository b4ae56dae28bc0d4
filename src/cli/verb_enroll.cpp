#include <memory>

#include "cli/verbs.h"

namespace swapd::cli {

namespace {
struct EnrollOptions {
  std::uint32_t pid = 0;
  bool tree = false;
  std::string class_name;
};
}  // namespace

Action declare_enroll(CLI::App& app, Context& context) {
  auto options = std::make_shared<EnrollOptions>();
  add_pid(app, options->pid, "The process to supervise, all its threads and whatever it starts from now on");
  app.add_flag("--tree", options->tree, "With the descendants that it has already");
  app.add_option("--class", options->class_name, "The class that it belongs to")->type_name("NAME");
  app.footer(R"(Nothing is changed in the program, and `swapctl release` leaves no trace. swapd must observe
with bpf (`swapctl status` says so).

Example:
  swapctl enroll --tree $(pidof -s postgres))");
  return [options, &context] {
    return order(context, [&](Client& c) {
      return c.enroll(static_cast<pid_t>(options->pid), options->tree, options->class_name);
    });
  };
}

}  // namespace swapd::cli
