#include "policy/schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "policy/nearest.h"

namespace swapd::policy {

std::vector<Entry> entries(const toml::table& table) {
  struct Placed {
    Entry entry;
    unsigned column;
  };
  std::vector<Placed> placed;
  for (const auto& [key, node] : table) {
    const toml::source_position& begin = key.source().begin;
    placed.push_back({{key.str(), &node, begin.line}, begin.column});
  }
  std::ranges::sort(placed, {}, [](const Placed& p) { return std::tuple(p.entry.line, p.column); });
  std::vector<Entry> sorted;
  sorted.reserve(placed.size());
  for (const Placed& p : placed) sorted.push_back(p.entry);
  return sorted;
}

Error Complaint::at(unsigned line, std::string_view what) const {
  return {EINVAL, std::string(file_) + ":" + std::to_string(line) + ": " + std::string(what)};
}

std::string printable(std::string_view text) {
  constexpr std::size_t most = 60;
  std::string out;
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  if (text.size() > most) out += "...";
  return out;
}

std::string shown(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return '"' + printable(node.as_string()->get()) + '"';
    case toml::node_type::integer:
      return std::to_string(node.as_integer()->get());
    case toml::node_type::floating_point: {
      std::array<char, 40> out{};
      std::snprintf(out.data(), out.size(), "%.6g", node.as_floating_point()->get());
      return out.data();
    }
    case toml::node_type::boolean:
      return node.as_boolean()->get() ? "true" : "false";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

std::optional<double> number(const toml::node& node) {
  std::optional<double> value;
  if (const auto* integer = node.as_integer()) value = static_cast<double>(integer->get());
  if (const auto* floating = node.as_floating_point()) value = floating->get();
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string range_text(double low, double high) {
  std::array<char, 80> out{};
  std::snprintf(out.data(), out.size(), "from %.10g to %.10g", low, high);
  return out.data();
}

std::string wrong_word(const toml::node& node, std::span<const std::string_view> words) {
  if (const auto* value = node.as_string())
    return "cannot be " + shown(node) + suggestion(value->get(), words, "\"", "\"");
  std::string all = "must be ";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) all += i + 1 == words.size() ? " or " : ", ";
    all += '"' + std::string(words[i]) + '"';
  }
  return all + ", not " + shown(node);
}

KeyRule only_table(std::string_view key) {
  return {key, [](const toml::node& node) -> Wrong { return "must be a table, not " + shown(node); }};
}

KeyRule line_of_text(std::string_view key, std::string& place, std::size_t longest) {
  return {key, [&place, longest](const toml::node& node) -> Wrong {
            const auto* value = node.as_string();
            if (value == nullptr) return "must be a text, not " + shown(node);
            const std::string& text = value->get();
            const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
            if (text.size() > longest || std::ranges::any_of(text, control))
              return "must be one line of at most " + std::to_string(longest) + " bytes";
            place = text;
            return {};
          }};
}

KeyRule list_of_names(std::string_view key, std::vector<std::string>& place, std::size_t longest, std::size_t most) {
  return {key, [&place, longest, most](const toml::node& node) -> Wrong {
            const auto* list = node.as_array();
            if (list == nullptr) return "must be a list of names, not " + shown(node);
            if (list->size() > most) return "must be a list of at most " + std::to_string(most) + " names";
            std::vector<std::string> names;
            for (const toml::node& one : *list) {
              const auto* name = one.as_string();
              if (name == nullptr || name->get().empty() || name->get().size() > longest)
                return "must be a list of names of 1 to " + std::to_string(longest) + " bytes, not " + shown(one);
              names.push_back(name->get());
            }
            place = std::move(names);
            return {};
          }};
}

KeyRule globs(std::string_view key, std::vector<std::string>& place) {
  return {key, [&place](const toml::node& node) -> Wrong {
            constexpr std::size_t longest = 200, most = 100;
            std::vector<std::string> found;
            const auto add = [&](const toml::node& one) {
              const auto* text = one.as_string();
              const bool good = text != nullptr && !text->get().empty() && text->get().size() <= longest;
              if (good) found.push_back(text->get());
              return good;
            };
            const auto* list = node.as_array();
            const bool good = list == nullptr ? add(node)
                                              : !list->empty() && list->size() <= most &&
                                                    std::all_of(list->begin(), list->end(), add);
            if (!good)
              return "must be a text of 1 to " + std::to_string(longest) + " bytes, or a list of 1 to " +
                     std::to_string(most) + " of them, not " + shown(node);
            place = std::move(found);
            return {};
          }};
}

std::string cut_as_comm(std::string_view glob) {
  std::string cut;
  for (std::size_t i = 0, taken = 0; i < glob.size() && taken < longest_comm; ++i) {
    cut += glob[i];
    if (glob[i] != '*') ++taken;
  }
  return cut;
}

KeyRule globs_of_comms(std::string_view key, std::vector<std::string>& place) {
  KeyRule rule = globs(key, place);
  rule.read = [&place, any = std::move(rule.read)](const toml::node& node) -> Wrong {
    if (Wrong wrong = any(node)) return wrong;
    for (const std::string_view pattern : place) {
      const std::string_view glob = pattern.substr(pattern.starts_with('!') ? 1 : 0);
      const auto stars = static_cast<std::size_t>(std::ranges::count(glob, '*'));
      if (glob.size() - stars <= longest_comm) continue;
      const std::string cut = std::string(pattern.substr(0, pattern.size() - glob.size())) + cut_as_comm(glob);
      return "is compared with a name that the kernel cuts after " + std::to_string(longest_comm) + " bytes, so '" +
             printable(pattern) + "' fits none; write '" + printable(cut) + "'";
    }
    return {};
  };
  return rule;
}

Status read_table(const toml::table& table, std::string_view name, std::span<const KeyRule> rules,
                  const Complaint& complaint, const std::function<bool(const Entry&)>& other) {
  const std::string where = " in [" + printable(name) + "]";
  for (const Entry& entry : entries(table)) {
    if (other && other(entry)) continue;
    const auto rule = std::ranges::find(rules, entry.key, &KeyRule::key);
    if (rule == rules.end()) {
      std::vector<std::string_view> known;
      for (const KeyRule& r : rules) known.push_back(r.key);
      return complaint.at(entry.line,
                          "unknown key '" + printable(entry.key) + "'" + where + suggestion(entry.key, known));
    }
    if (const Wrong wrong = rule->read(*entry.node))
      return complaint.at(entry.line, "'" + std::string(entry.key) + "'" + where + " " + *wrong);
  }
  return Done{};
}

}  // namespace swapd::policy
