#include "cli/complete/complete.h"

#include <algorithm>
#include <string_view>

#include "cli/top/top.h"
#include "cli/verbs/verbs.h"
#include "cli/words.h"
#include "policy/import/imported.h"

namespace swapd::cli {
namespace {

using Rest = Completion::Rest;

const CLI::App* subcommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; }))
    if (one->get_name() == name) return one;
  return nullptr;
}

const CLI::Option* option_of(const CLI::App& app, const CLI::App& verb, const std::string& name) {
  const CLI::Option* own = verb.get_option_no_throw(name);
  return own != nullptr ? own : app.get_option_no_throw(name);
}

bool takes_value(const CLI::Option* option) { return option != nullptr && option->get_items_expected_min() > 0; }

// The text of --help may go over several lines.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class Completer {
 public:
  Completer(const CLI::App& app, const Sources& sources, std::string_view begun)
      : app_(app), sources_(sources), begun_(begun) {}

  Completion values(const CLI::Option& option) {
    const std::string name = option.get_name();
    if (name == "--class") add(sources_.classes());
    if (name == "--observe") add(observer_words);
    if (name == "--format") add(graph_words);
    if (name == "--sort") add(top_order_words);
    const std::string type = option.get_type_name();
    if (type == "PATH" || type == "FILE") out_.rest = Rest::file;
    return out_;
  }
  Completion options(const CLI::App& verb) {
    for (const CLI::App* app : {&verb, &app_}) {
      for (const CLI::Option* option : app->get_options())
        for (const std::string& name : option->get_lnames()) add({"--" + name, first_line(option->get_description())});
      if (&verb == &app_) break;
    }
    return out_;
  }
  Completion verbs(const CLI::App& of) {
    for (const CLI::App* one : of.get_subcommands([](const CLI::App*) { return true; }))
      add({one->get_name(), first_line(one->get_description())});
    return out_;
  }
  Completion positional(const CLI::App& verb, std::size_t place) {
    for (const CLI::Option* option : verb.get_options()) {
      if (!option->get_positional() || place-- != 0) continue;
      const std::string name = option->get_name(true);
      if (name == "PID") add(verb.get_name() == "enroll" ? sources_.processes() : sources_.managed());
      if (name == "CLASS") add(sources_.classes());
      if (name == "TOOL")
        for (const std::string_view word : policy::tool_words.texts()) add({std::string(word), ""});
      if (name == "FILE" || name == "PATH") out_.rest = Rest::file;
    }
    return out_;
  }

 private:
  void add(Candidate candidate) {
    if (candidate.word.starts_with(begun_)) out_.candidates.push_back(std::move(candidate));
  }
  void add(std::vector<Candidate> candidates) {
    for (Candidate& one : candidates) add(std::move(one));
  }
  template <std::size_t N>
  void add(const std::array<const char*, N>& words) {
    for (const char* word : words) add(Candidate{word, ""});
  }

  const CLI::App& app_;
  const Sources& sources_;
  std::string_view begun_;
  Completion out_;
};

bool takes_command(const CLI::App& app) {
  return std::ranges::any_of(verbs(), [&](const Verb& v) { return v.takes_command && app.get_name() == v.name; });
}

}  // namespace

Completion complete(const CLI::App& app, const std::vector<std::string>& words, const Sources& sources) {
  if (words.empty()) return {};
  const std::size_t last = words.size() - 1;
  Completer completer(app, sources, words[last]);
  const CLI::App* at = &app;
  std::size_t positionals = 0;
  bool options = true;
  for (std::size_t i = 0; i <= last; ++i) {
    const std::string& word = words[i];
    const bool is_option = options && word.size() > 1 && word.starts_with('-');
    if (takes_command(*at) && !is_option) return {.rest = Rest::command, .command_at = i};
    if (i == last) break;
    if (word == "--") {
      if (takes_command(*at)) return {.rest = Rest::command, .command_at = i + 1};
      options = false;
    } else if (is_option) {
      const CLI::Option* option = option_of(app, *at, word);
      if (takes_value(option) && ++i == last) return completer.values(*option);
    } else if (const CLI::App* sub = positionals == 0 ? subcommand(*at, word) : nullptr) {
      at = sub;
    } else {
      ++positionals;
    }
  }
  if (options && words[last].starts_with('-')) return completer.options(*at);
  if (positionals == 0 && !at->get_subcommands([](const CLI::App*) { return true; }).empty())
    return completer.verbs(*at);
  return completer.positional(*at, positionals);
}

void print(std::ostream& out, const Completion& completion) {
  if (completion.rest == Rest::file) out << ":file\n";
  if (completion.rest == Rest::command) out << ":command " << completion.command_at << '\n';
  for (const Candidate& one : completion.candidates)
    out << one.word << (one.what.empty() ? "" : "\t") << one.what << '\n';
  out << std::flush;
}

}  // namespace swapd::cli
