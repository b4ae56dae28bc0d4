#include "cli/verbs/verbs.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>

#include "cli/failure.h"
#include "cli/progress.h"
#include "cli/words.h"

namespace swapd::cli {

std::span<const Verb> verbs() {
  static constexpr std::array table = {
      Verb{"run", "start a program under supervision", false, true, declare_run},
      Verb{"enroll", "supervise a program that runs already", false, false, declare_enroll},
      Verb{"release", "stop supervising a program", false, false, declare_release},
      Verb{"thaw", "have a program back that was put away for want of memory", false, false, declare_thaw},
      Verb{"restart", "swapd begins again, with the program that is there now", false, false, declare_restart},
      Verb{"pause", "lend nothing until resumed; all else goes on", false, false, declare_pause},
      Verb{"resume", "lend again", false, false, declare_resume},
      Verb{"set", "change the base priority of a managed thread or process", false, false, declare_set},
      Verb{"status", "what swapd is, watches and costs", true, false, declare_status},
      Verb{"ps", "the managed threads", true, false, declare_ps},
      Verb{"top", "the same, live: sorted by wait, as a tree, with keys as in htop", true, false, declare_top},
      Verb{"why", "whom a thread waits for, and what is done about it", true, false, declare_why},
      Verb{"graph", "the wait graph, for Graphviz or as JSON", true, false, declare_graph},
      Verb{"events", "what happens, line by line", true, false, declare_events},
      Verb{"policy", "the policy in force, and whether one is good", true, false, declare_policy},
      Verb{"class", "the classes of programs, and who is in one", true, false, declare_class},
      Verb{"record", "write what swapd decides upon to a file, for swapd --replay", true, false, declare_record},
  };
  return table;
}

int show(const Context& context, const std::function<Result<std::string>(Client&)>& ask,
         const std::function<std::string(const std::string&, const Paint&)>& render) {
  Result<Client> client = Client::connect(context.socket);
  if (!client) return report(*context.err, client.error());
  const Result<std::string> text = ask(*client);
  if (!text) return report(*context.err, text.error());
  try {
    *context.out << (context.json ? *text + "\n" : render(*text, paint_of(context))) << std::flush;
  } catch (const Json::exception&) {  // not the fields that this swapctl knows
    return report(*context.err, failure("cannot read the answer of swapd at " + context.socket + ": try --json"));
  }
  if (!*context.out) return report(*context.err, failure("cannot write the answer: is the disk full?"));
  return exit_done;
}

Paint paint_of(const Context& context) { return paint_for(context.colour, STDOUT_FILENO); }

int order(const Context& context, const std::string& doing, const std::function<Status(Client&)>& command) {
  Result<Client> client = Client::connect(context.socket);
  if (!client) return report(*context.err, client.error());
  std::optional<Progress> progress(std::in_place, doing, STDERR_FILENO);
  const Status done = command(*client);
  progress.reset();
  return done ? exit_done : report(*context.err, done.error());
}

CLI::Option* add_pid(CLI::App& app, std::uint32_t& pid, const char* what) {
  return app.add_option("PID", pid, what)->required()->type_name("")->check([](const std::string& text) {
    const bool digits = !text.empty() && text.size() <= 10 && text.find_first_not_of("0123456789") == std::string::npos;
    const long long number = digits ? std::stoll(text) : 0;
    return number >= 1 && number <= INT32_MAX ? std::string() : "'" + text + "' is not a process id";
  });
}

}  // namespace swapd::cli
