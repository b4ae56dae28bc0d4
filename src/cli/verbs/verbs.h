// The verb table: one entry and one file a verb. A new verb is a function here, a line in verbs.cpp, and its file.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "cli/client.h"
#include "cli/paint.h"

namespace swapd::cli {

// Input of every verb: where swapd is, how to print, and for `run` the command after its options.
struct Context {
  std::string socket = default_socket;
  bool json = false;
  std::string colour = "auto";  // of its text: auto, always, never
  std::vector<std::string> command;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
};

// Does the verb; the exit status. Only called after the command line was understood.
using Action = std::function<int()>;

struct Verb {
  const char* name;
  const char* summary;
  bool shows;                                          // has --json
  bool takes_command;                                  // what follows its options is another program's command line
  Action (*declare)(CLI::App& app, Context& context);  // adds its options
};

[[nodiscard]] std::span<const Verb> verbs();

[[nodiscard]] Action declare_enroll(CLI::App& app, Context& context);
[[nodiscard]] Action declare_events(CLI::App& app, Context& context);
[[nodiscard]] Action declare_graph(CLI::App& app, Context& context);
[[nodiscard]] Action declare_class(CLI::App& app, Context& context);
[[nodiscard]] Action declare_pause(CLI::App& app, Context& context);
[[nodiscard]] Action declare_policy(CLI::App& app, Context& context);
[[nodiscard]] Action declare_ps(CLI::App& app, Context& context);
[[nodiscard]] Action declare_record(CLI::App& app, Context& context);
[[nodiscard]] Action declare_release(CLI::App& app, Context& context);
[[nodiscard]] Action declare_thaw(CLI::App& app, Context& context);
[[nodiscard]] Action declare_restart(CLI::App& app, Context& context);
[[nodiscard]] Action declare_resume(CLI::App& app, Context& context);
[[nodiscard]] Action declare_run(CLI::App& app, Context& context);
[[nodiscard]] Action declare_set(CLI::App& app, Context& context);
[[nodiscard]] Action declare_status(CLI::App& app, Context& context);
[[nodiscard]] Action declare_top(CLI::App& app, Context& context);
[[nodiscard]] Action declare_why(CLI::App& app, Context& context);

// For verbs that ask once and show: the text as it came with --json, else what `render` makes of it.
[[nodiscard]] int show(const Context& context, const std::function<Result<std::string>(Client&)>& ask,
                       const std::function<std::string(const std::string&, const Paint&)>& render);
// For verbs that command: nothing is printed where it went well. doing: said on a terminal while it lasts.
[[nodiscard]] int order(const Context& context, const std::string& doing,
                        const std::function<Status(Client&)>& command);
[[nodiscard]] Paint paint_of(const Context& context);

// A positional PID: 1 and up.
CLI::Option* add_pid(CLI::App& app, std::uint32_t& pid, const char* what);

}  // namespace swapd::cli
