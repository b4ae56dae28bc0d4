#include <memory>

#include "cli/verbs/verbs.h"

namespace swapd::cli {

namespace {
struct EnrollOptions {
  std::uint32_t pid = 0;
  bool tree = false;
  std::string class_name;
  bool allow_no_new_privs = false;
};
}  // namespace

Action declare_enroll(CLI::App& app, Context& context) {
  auto options = std::make_shared<EnrollOptions>();
  add_pid(app, options->pid, "The process to supervise, all its threads and whatever it starts from now on");
  app.add_flag("--tree", options->tree, "With the descendants that it has already");
  app.add_option("--class", options->class_name, "The class that it belongs to")->type_name("NAME");
  app.add_flag("--allow-no-new-privs", options->allow_no_new_privs,
               "With the seccomp observer, where the process is not root's: setuid programs and file capabilities will "
               "not work in it and its children any more");
  app.footer(R"(With the bpf observer (`swapctl status` says which it is) nothing is changed in the program, and
`swapctl release` leaves no trace. With seccomp the process stands still for some milliseconds while a filter
is installed in it, which it keeps until its end.

Example:
  swapctl enroll --tree $(pidof -s postgres))");
  return [options, &context] {
    return order(context, "enrolling", [&](Client& c) {
      return c.enroll(static_cast<pid_t>(options->pid), options->tree, options->class_name,
                      options->allow_no_new_privs);
    });
  };
}

}  // namespace swapd::cli
