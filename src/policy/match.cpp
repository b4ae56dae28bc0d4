#include "policy/match.h"

#include <algorithm>
#include <array>

namespace swapd::policy {
namespace {

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

// "docker-0123abcd.scope" between "docker-" and ".scope".
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  if (text.size() <= before.size() + after.size() || !text.starts_with(before) || !text.ends_with(after)) return {};
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

}  // namespace

// For a `*` the shortest text is taken first, and one byte more each time what follows does not fit: only
// the last `*` needs to be tried again.
bool fits(std::string_view glob, std::string_view text) {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t g = 0, t = 0, star = none, taken = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      taken = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != none) {
      g = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

std::vector<std::string> units_of(std::string_view cgroup) {
  constexpr std::array<std::string_view, 4> leaves = {".service", ".scope", ".socket", ".mount"};
  std::vector<std::string> units;
  for (const std::string_view part : parts_of(cgroup)) {
    const auto ends = [&](std::string_view suffix) { return part.size() > suffix.size() && part.ends_with(suffix); };
    const bool leaf = std::ranges::any_of(leaves, ends);
    if (!leaf && !ends(".slice")) break;
    units.emplace_back(part);
    if (leaf) break;
  }
  return units;
}

std::string container_of(std::string_view cgroup) {
  struct Form {
    std::string_view before, after;
  };
  constexpr std::array<Form, 7> forms = {{{"docker-", ".scope"},
                                          {"libpod-", ".scope"},
                                          {"cri-containerd-", ".scope"},
                                          {"crio-", ".scope"},
                                          {"lxc.payload.", ""},
                                          {"systemd-nspawn@", ".service"},
                                          {"machine-", ".scope"}}};
  constexpr std::array<std::string_view, 3> folders = {"docker", "lxc", "libpod_parent"};
  const auto parts = parts_of(cgroup);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].starts_with("user@")) return "";  // below it names are the user's own
    for (const Form& form : forms)
      if (const auto name = between(parts[i], form.before, form.after); !name.empty()) return std::string(name);
    if (i > 0 && std::ranges::find(folders, parts[i - 1]) != folders.end()) {
      const auto name = between(parts[i], "libpod-", "");
      return std::string(name.empty() ? parts[i] : name);
    }
  }
  return "";
}

bool fits(const MatchRule& rule, const Program& program) {
  using Globs = std::vector<std::string>;
  const auto one = [](const Globs& globs, std::string_view text) {
    return std::ranges::any_of(globs, [&](const std::string& glob) { return fits(glob, text); });
  };
  const auto said = [&](const Globs& globs, std::string_view text) { return globs.empty() || one(globs, text); };
  if (!said(rule.exe, program.exe) || !said(rule.comm, program.comm) || !said(rule.cmdline, program.cmdline) ||
      !said(rule.cgroup, program.cgroup))
    return false;
  // Facts that are derived from a program's others, only for rules that ask for them.
  if (!rule.user.empty() && !one(rule.user, program.user) && !one(rule.user, std::to_string(program.uid))) return false;
  if (!rule.unit.empty() &&
      std::ranges::none_of(units_of(program.cgroup), [&](const std::string& unit) { return one(rule.unit, unit); }))
    return false;
  if (rule.container.empty()) return true;
  const std::string container = container_of(program.cgroup);
  return !container.empty() && one(rule.container, container);
}

const NamedRule* rule_for(const std::vector<NamedRule>& rules, const Program& program) {
  const auto found = std::ranges::find_if(rules, [&](const NamedRule& named) { return fits(named.rule, program); });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace swapd::policy
