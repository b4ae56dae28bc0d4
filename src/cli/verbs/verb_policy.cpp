#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <ostream>
#include <vector>

#include "cli/failure.h"
#include "cli/program.h"
#include "cli/render.h"
#include "cli/verbs/verbs.h"
#include "policy/import/imported.h"
#include "sys/kernel_file.h"

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

// The files of a tool's configuration are known by how their names end. A file that is named itself may end as it
// likes.
std::vector<std::string_view> endings_of(policy::Tool tool) {
  switch (tool) {
    case policy::Tool::ananicy:
      return {".types", ".cgroups", ".rules"};
    case policy::Tool::system76:
      return {".kdl"};
    case policy::Tool::gamemode:
      return {".ini"};
    case policy::Tool::cgrules:
      break;
  }
  return {".conf"};
}

// The file, or those below the folder: of each folder its own files first, all by name. Named as seen from the folder.
Result<std::vector<policy::SourceFile>> source_files(policy::Tool tool, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  std::vector<fs::path> found;
  const bool folder = fs::is_directory(path, failure);
  if (!folder) found.emplace_back(path);
  for (auto at = folder ? fs::recursive_directory_iterator(path, failure) : fs::recursive_directory_iterator();
       !failure && at != fs::recursive_directory_iterator(); at.increment(failure)) {
    const std::string name = at->path().filename();
    const auto endings = endings_of(tool);
    const bool ours = std::ranges::any_of(endings, [&](std::string_view one) { return name.ends_with(one); });
    if (ours && at->is_regular_file(failure)) found.push_back(at->path());
  }
  if (failure) return user_mistake("cannot read " + printable(path) + ": " + failure.message());
  if (found.empty())
    return user_mistake("no file of " + std::string(policy::tool_words.of(tool)) + " below " + path + " (*" +
                        std::string(endings_of(tool).back()) + ")");
  std::ranges::sort(found, {}, [](const fs::path& one) { return std::pair(one.parent_path(), one.filename()); });
  std::vector<policy::SourceFile> files;
  for (const fs::path& one : found) {
    auto text = sys::read_text(one);
    if (!text) return user_mistake(text.error().text());
    const fs::path name = folder ? one.lexically_relative(path) : one.filename();
    files.push_back({printable(name.string()), std::move(*text)});
  }
  return files;
}

int import(const Context& context, const std::string& word, const std::string& path) {
  const auto tool = policy::tool_words.find(word);
  if (!tool) {
    std::string known;
    for (const std::string_view one : policy::tool_words.texts())
      known += (known.empty() ? "" : ", ") + std::string(one);
    return report(*context.err, user_mistake("no importer for '" + printable(word) + "'; there are " + known));
  }
  const auto files = source_files(*tool, path);
  if (!files) return report(*context.err, files.error());
  const auto imported = policy::import_from(*tool, *files);
  if (!imported) return report(*context.err, user_mistake(imported.error().context()));
  *context.out << policy::policy_text(*imported, *tool, printable(path));
  std::size_t programs = 0;
  for (const policy::ImportedRule& rule : imported->rules) programs += rule.patterns.size();
  *context.err << fmt::format("swapctl: {} pattern(s) taken over; {} thing(s) not, which the policy's end lists\n",
                              programs, imported->unsaid.size());
  return exit_done;
}

}  // namespace

Action declare_policy(CLI::App& app, Context& context) {
  auto file = std::make_shared<std::string>();
  CLI::App* show_it = app.add_subcommand("show", "The policy in force, with the file and line of each value");
  show_it->fallthrough();
  CLI::App* check_it = app.add_subcommand("check", "Is a policy good? Without a file: all that swapd would read");
  check_it->add_option("FILE", *file, "The policy")->type_name("");
  auto tool = std::make_shared<std::string>();
  CLI::App* import_it = app.add_subcommand("import", "Another tool's configuration as a policy, on standard output");
  import_it->add_option("TOOL", *tool, "ananicy, system76, gamemode-ini or cgrules")->type_name("")->required();
  import_it->add_option("PATH", *file, "Its configuration: a file or a folder")->type_name("")->required();
  app.require_subcommand(1, 1);
  app.footer(
      R"(A policy is read when swapd starts, and by `swapctl restart`, which a policy with a mistake stops from doing anything.

Examples:
  swapctl policy check site.toml
  swapctl policy show | grep -v built-in
  swapctl policy import ananicy /etc/ananicy.d > /etc/swapd/policies.d/ananicy.toml)");
  return [file, tool, check_it, import_it, &context] {
    if (check_it->parsed()) return check(context, *file);
    if (import_it->parsed()) return import(context, *tool, *file);
    return show(
        context, [](Client& c) { return c.policy(); }, render_policy);
  };
}

}  // namespace swapd::cli
