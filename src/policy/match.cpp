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

// Where a `*` stands, the shortest text is taken for it, and one byte more each time what follows does not fit: only
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
  const auto one = [](const std::vector<std::string>& globs, std::string_view text) {
    return globs.empty() || std::ranges::any_of(globs, [&](const std::string& glob) { return fits(glob, text); });
  };
  const auto in_container = [&](const std::vector<std::string>& globs, const std::string& container) {
    return !container.empty() && one(globs, container);
  };
  const auto any = [&](const std::vector<std::string>& globs, const std::vector<std::string>& texts) {
    return globs.empty() || std::ranges::any_of(texts, [&](const std::string& text) { return one(globs, text); });
  };
  return one(rule.exe, program.exe) && one(rule.comm, program.comm) && one(rule.cmdline, program.cmdline) &&
         one(rule.cgroup, program.cgroup) && any(rule.user, {program.user, std::to_string(program.uid)}) &&
         (rule.unit.empty() || any(rule.unit, units_of(program.cgroup))) &&
         (rule.container.empty() || in_container(rule.container, container_of(program.cgroup)));
}

const NamedRule* rule_for(const std::vector<NamedRule>& rules, const Program& program) {
  const auto found = std::ranges::find_if(rules, [&](const NamedRule& named) { return fits(named.rule, program); });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace swapd::policy
