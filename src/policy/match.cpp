#include "policy/match.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

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

namespace {

using Patterns = std::vector<std::string>;

bool is_negative(std::string_view pattern) { return pattern.starts_with('!'); }

// Some text fits some pattern, and no text a negative one.
bool one_fits(const Patterns& patterns, std::span<const std::string> texts) {
  bool positive = false, found = false;
  for (const std::string_view pattern : patterns) {
    const bool negative = is_negative(pattern);
    const bool any = std::ranges::any_of(
        texts, [&](const std::string& text) { return fits(negative ? pattern.substr(1) : pattern, text); });
    if (negative && any) return false;
    positive = positive || !negative;
    found = found || (!negative && any);
  }
  return found || !positive;
}

bool said(const Patterns& patterns, const std::string& text) {
  return patterns.empty() || one_fits(patterns, std::span(&text, 1));
}

bool is_literal(std::string_view pattern) {
  return !is_negative(pattern) && pattern.find_first_of("*?") == std::string_view::npos;
}

}  // namespace

bool fits(const MatchRule& rule, const Program& program) {
  if (!said(rule.exe, program.exe) || !said(rule.comm, program.comm) || !said(rule.cmdline, program.cmdline) ||
      !said(rule.cgroup, program.cgroup))
    return false;
  // Facts that are derived from a program's others, only for rules that ask for them.
  if (!rule.user.empty()) {
    const std::array<std::string, 2> users = {program.user, std::to_string(program.uid)};
    if (!one_fits(rule.user, users)) return false;
  }
  if (!rule.unit.empty() && !one_fits(rule.unit, units_of(program.cgroup))) return false;
  if (!rule.parent.empty() &&
      !one_fits(rule.parent, std::span(program.ancestors).first(program.ancestors.empty() ? 0 : 1)))
    return false;
  if (!rule.descends.empty() && !one_fits(rule.descends, program.ancestors)) return false;
  if (rule.container.empty()) return true;
  std::vector<std::string> containers = program.container_names;
  if (std::string id = container_of(program.cgroup); !id.empty()) containers.push_back(std::move(id));
  return !containers.empty() && one_fits(rule.container, containers);
}

RuleTable::RuleTable(std::vector<NamedRule> rules) : rules_(std::move(rules)) {
  for (std::size_t place = 0; place < rules_.size(); ++place) {
    const Patterns& names = rules_[place].rule.comm;
    if (names.empty() || !std::ranges::all_of(names, is_literal)) {
      of_any_.push_back(place);
      continue;
    }
    for (const std::string& name : names)
      if (auto& places = of_comm_[name]; places.empty() || places.back() != place) places.push_back(place);
  }
}

const NamedRule* RuleTable::rule_for(const Program& program) const {
  static const std::vector<std::size_t> none;
  const auto named = of_comm_.find(program.comm);
  const auto& of_name = named == of_comm_.end() ? none : named->second;
  // Both are in order.
  for (auto one = of_name.begin(), other = of_any_.begin(); one != of_name.end() || other != of_any_.end();) {
    const bool first = other == of_any_.end() || (one != of_name.end() && *one < *other);
    const NamedRule& rule = rules_[first ? *one++ : *other++];
    if (fits(rule.rule, program)) return &rule;
  }
  return nullptr;
}

}  // namespace swapd::policy
