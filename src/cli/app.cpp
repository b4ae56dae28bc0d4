#include "cli/app.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/complete/complete.h"
#include "cli/failure.h"
#include "cli/verbs/verbs.h"

namespace swapd::cli {
namespace {

constexpr const char* examples = R"(Examples:
  swapctl run --fifo 50 -- psql -c 'SELECT 1'    supervise psql, which matters
  swapctl run -- postgres -D /srv/data           supervise those that it waits for, too
  swapctl why $(pgrep psql)                      whom does it wait for, and is it helped?
  swapctl graph | dot -Tsvg > waits.svg          draw who waits for whom

Exit status: 0 done, 1 failed, 2 usage or no such thing. `run` becomes the program:
its status is the program's own; 127 not found, 126 not executable.
The socket is --socket, else SWAPD_SOCKET, else /run/swapd/swapd.sock.)";

const Verb* find_verb(const std::string& name) {
  const auto table = verbs();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Verb& v) { return v.name == name; });
  return found == table.end() ? nullptr : &*found;
}

// True where `word` is an option that takes the next word as its value.
bool takes_next(const CLI::App& app, const std::string& word) {
  const CLI::Option* option = app.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_min() > 0;
}

// The index of the first word that is neither an option of these nor an option's value.
std::size_t skip_options(const std::vector<const CLI::App*>& apps, const std::vector<std::string>& words,
                         std::size_t i) {
  while (i < words.size() && words[i].size() > 1 && words[i][0] == '-' && words[i] != "--") {
    const bool two = std::any_of(apps.begin(), apps.end(), [&](const CLI::App* a) { return takes_next(*a, words[i]); });
    i += two ? 2 : 1;
  }
  return std::min(i, words.size());
}

// Cuts the other program's command line off, so that its options are never taken for ours.
std::vector<std::string> cut_command(const CLI::App& app, const CLI::App& sub, std::vector<std::string>& words,
                                     std::size_t verb) {
  const std::size_t end = skip_options({&sub, &app}, words, verb + 1);
  const std::size_t command = end < words.size() && words[end] == "--" ? end + 1 : end;
  std::vector<std::string> rest(words.begin() + static_cast<std::ptrdiff_t>(command), words.end());
  words.resize(end);
  return rest;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

class Formatter : public CLI::Formatter {
 public:
  Formatter() {
    column_width(34);
    label("SUBCOMMAND", "VERB");
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    const Verb* verb = find_verb(app->get_name());
    if (verb == nullptr || !verb->takes_command) return CLI::Formatter::make_usage(app, std::move(name));
    return "Usage: " + name + " [OPTIONS] [--] CMD [ARG...]\n";
  }
};

// The words are those of an unfinished command line, so nothing of it is parsed.
std::string socket_in(const std::vector<std::string>& words, std::string otherwise) {
  for (std::size_t i = 0; i + 1 < words.size() && words[i] != "--"; ++i)
    if (words[i] == "--socket") return words[i + 1];
  const char* given = std::getenv("SWAPD_SOCKET");
  return given != nullptr && *given != '\0' ? given : otherwise;
}

std::string verb_names() {
  std::string names;
  for (const Verb& verb : verbs()) names += (names.empty() ? "" : ", ") + std::string(verb.name);
  return names;
}

}  // namespace

int run_app(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  Context context;
  context.out = &out;
  context.err = &err;

  CLI::App app("Enrolls programs with swapd, and shows what it does for them and why.", "swapctl");
  app.add_option("--socket", context.socket, "Where swapd listens")->envname("SWAPD_SOCKET")->type_name("PATH");
  app.add_option("--color", context.colour, "Paint text: auto (on a terminal, unless NO_COLOR is set), always, never")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}).description(""));
  app.set_version_flag("--version", "swapctl " SWAPD_VERSION, "Print the version");
  app.require_subcommand(1, 1);
  app.footer(examples);
  app.formatter(std::make_shared<Formatter>());

  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    sub->fallthrough();
    sub->group("Verbs");
    if (verb.shows) sub->add_flag("--json", context.json, "Print JSON instead of text");
    actions.emplace_back(sub, verb.declare(*sub, context));
  }

  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::size_t at = skip_options({&app}, words, 0);
  // Not in the table: it is for the shells' completion (share/bash-completion and its like), and not for people.
  if (at == 0 && words.size() > 2 && words[0] == "complete" && words[1] == "--") {
    words.erase(words.begin(), words.begin() + 2);
    print(out, complete(app, words, live_sources(socket_in(words, context.socket))));
    return exit_done;
  }
  const Verb* verb = at < words.size() ? find_verb(words[at]) : nullptr;
  if (at < words.size() && verb == nullptr)
    return report(err, user_mistake("'" + words[at] + "' is not a verb: it is one of " + verb_names()));
  if (verb != nullptr && verb->takes_command)
    context.command = cut_command(app, *app.get_subcommand(verb->name), words, at);

  try {
    std::reverse(words.begin(), words.end());  // CLI11 wants it so
    app.parse(words);
  } catch (const CLI::Success& help) {
    return app.exit(help, out, err);
  } catch (const CLI::ParseError& error) {
    if (verb == nullptr && words.empty() && argc <= 1)
      return report(err, user_mistake("give a verb: " + verb_names() + "; swapctl --help has examples"));
    const std::string where = verb == nullptr ? "swapctl --help" : "swapctl " + std::string(verb->name) + " --help";
    return report(err, user_mistake(one_line(error.what()) + "; see " + where));
  }
  for (const auto& [sub, action] : actions)
    if (sub->parsed()) return action();
  return exit_usage;
}

}  // namespace swapd::cli
