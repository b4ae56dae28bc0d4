#include "policy/import/imported.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "policy/schema.h"

namespace swapd::policy {
namespace {

constexpr std::size_t most_patterns = 100;  // of one list (docs/policy.md)
constexpr std::size_t longest_pattern = 200;
constexpr std::size_t longest_name = 64;

// Bytes of the UTF-8 character that begins the text; 0: none does (RFC 3629).
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t at) -> unsigned { return static_cast<unsigned char>(text[at]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t at = 1; at < size; ++at)
    if ((byte(at) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool outside = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return overlong || outside ? 0 : size;
}

// As a policy can hold it, in one line: '?', which in a pattern is any byte, for each that is none of UTF-8.
std::string as_text(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t size = character_size(bytes);
    const bool control = size == 1 && (static_cast<unsigned char>(bytes[0]) < 0x20 || bytes[0] == 0x7f);
    out += size == 0 || control ? "?" : std::string(bytes.substr(0, size));
    bytes.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string text_of(const SourcePlace& place) { return as_text(place.file) + ":" + std::to_string(place.line); }

std::string setting(std::string_view key, const std::string& value) { return std::string(key) + " = " + value + "\n"; }

std::string text_of(const ProgramSettings& has) {
  std::string out;
  const bool realtime = has.sched == SchedPolicy::fifo || has.sched == SchedPolicy::rr;
  if (realtime)
    out += setting(name(*has.sched), std::to_string(std::min(has.realtime.value_or(1), 92)));
  else if (has.sched)
    out += setting("sched", quoted(name(*has.sched)));
  // SCHED_IDLE has no nice value.
  if (has.nice && !realtime && has.sched != SchedPolicy::idle) out += setting("nice", std::to_string(*has.nice));
  static constexpr std::array<std::string_view, 3> classes = {"realtime", "best-effort", "idle"};
  if (has.io_class) out += setting("io_class", quoted(classes.at(static_cast<std::size_t>(*has.io_class))));
  if (has.io_priority && has.io_class != IoClass::idle) out += setting("io_priority", std::to_string(*has.io_priority));
  if (has.oom_score_adj) out += setting("oom_score_adj", std::to_string(*has.oom_score_adj));
  return out;
}

// One list, each pattern with its place.
std::string list_of(std::string_view key, std::span<const ImportedPattern> patterns) {
  std::string out = std::string(key) + " = [\n";
  for (const ImportedPattern& one : patterns)
    out += "  " + quoted(as_text(one.glob)) + ",  # " + text_of(one.place) + "\n";
  return out + "]\n";
}

// By key, in the order in which each is first named.
std::vector<std::vector<ImportedPattern>> by_key(const std::vector<ImportedPattern>& patterns) {
  std::vector<std::vector<ImportedPattern>> lists;
  for (const ImportedPattern& one : patterns) {
    auto list = std::ranges::find_if(lists, [&](const auto& l) { return l.front().key == one.key; });
    if (list == lists.end()) list = lists.insert(lists.end(), std::vector<ImportedPattern>{});
    list->push_back(one);
  }
  return lists;
}

class Writer {
 public:
  void rule(const ImportedRule& rule) {
    const auto lists = by_key(rule.patterns);
    if (lists.empty()) return;
    // The longest one may have to be divided; the others stand in each part.
    const auto longest = std::ranges::max_element(lists, {}, &std::vector<ImportedPattern>::size);
    for (std::size_t from = 0; from < longest->size(); from += most_patterns) {
      out_ += "\n[match." + unique(rule.name) + "]\n";
      for (const auto& list : lists) {
        auto part = std::span(list);
        if (&list == &*longest) part = part.subspan(from, std::min(most_patterns, part.size() - from));
        out_ += list_of(list.front().key, part);
      }
      if (!rule.class_name.empty()) out_ += setting("class", quoted(rule.class_name));
      out_ += rule.manage ? text_of(rule.settings) : setting("manage", "false");
    }
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  // "game", "game-2", "game-3" …
  std::string unique(const std::string& name) {
    const int number = ++names_[name];
    std::string out = number == 1 ? name : name + "-" + std::to_string(number);
    return taken_.insert(out).second ? out : unique(name);
  }
  std::string out_;
  std::map<std::string, int> names_;
  std::set<std::string> taken_;
};

}  // namespace

// A character may be cut, too, and a policy is text: what is left of it is any bytes.
std::string comm_of(std::string_view name) {
  std::string comm(name.substr(0, longest_comm));
  if (comm.size() == name.size()) return comm;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  if (!continues(name[longest_comm])) return comm;
  std::size_t at = comm.size() - 1;
  while (at > 0 && continues(comm[at])) --at;
  std::fill(comm.begin() + static_cast<std::ptrdiff_t>(at), comm.end(), '?');
  return comm;
}

std::string class_name_of(std::string_view name) {
  std::string out(name.substr(0, longest_name - 8));  // there is room for a number
  for (char& c : out) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (!good) c = '-';
  }
  return out.empty() ? "imported" : out;
}

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<SchedPolicy> sched_called(std::string_view word) {
  if (word == "normal" || word == "other") return SchedPolicy::other;
  if (word == "batch") return SchedPolicy::batch;
  if (word == "idle") return SchedPolicy::idle;
  if (word == "fifo") return SchedPolicy::fifo;
  if (word == "rr") return SchedPolicy::rr;
  return std::nullopt;
}

std::optional<IoClass> io_class_called(std::string_view word) {
  if (word == "best-effort") return IoClass::best_effort;
  if (word == "idle") return IoClass::idle;
  if (word == "realtime" || word == "real-time") return IoClass::realtime;
  return std::nullopt;
}

namespace {

// A value that no policy can hold is listed instead.
void leave_out_values(ImportedRule& rule, Imported& imported) {
  if (rule.patterns.empty()) return;
  const auto keep = [&](std::optional<int>& value, std::string_view key, int least, int most) {
    if (!value || (*value >= least && *value <= most)) return true;
    imported.leave_out(rule.patterns.front().place, std::string(key) + " " + std::to_string(*value),
                       "it is not in " + std::to_string(least) + "…" + std::to_string(most));
    value.reset();
    return false;
  };
  ProgramSettings& has = rule.settings;
  // Above swapd's own the priority is cut (text_of).
  if (!keep(has.realtime, "real-time priority", 1, 99)) has.sched.reset();
  (void)keep(has.nice, "nice value", -20, 19);
  (void)keep(has.io_priority, "I/O priority", 0, 7);
  (void)keep(has.oom_score_adj, "OOM score", -1000, 1000);
}

// The same of patterns. A rule whose list would become empty, or would lose an exception, would
// fit more programs than it was meant for: it goes as a whole.
void leave_out_unsayable(Imported& imported) {
  const auto sayable = [](const ImportedPattern& one) {
    return !one.glob.empty() && one.glob.size() <= longest_pattern;
  };
  std::erase_if(imported.rules, [&](ImportedRule& rule) {
    bool goes = false;
    for (const ImportedPattern& bad : rule.patterns) {
      if (sayable(bad)) continue;
      imported.leave_out(bad.place, as_text(bad.glob.substr(0, 40)), "a pattern has 1 to 200 bytes");
      const bool others = std::ranges::any_of(rule.patterns, [&](const ImportedPattern& one) {
        return one.key == bad.key && sayable(one) && !one.glob.starts_with('!');
      });
      goes = goes || !others || bad.glob.starts_with('!');
    }
    leave_out_values(rule, imported);
    std::erase_if(rule.patterns, [&](const ImportedPattern& one) { return !sayable(one); });
    return goes;
  });
}

Result<Imported> import_of(Tool tool, std::span<const SourceFile> files) {
  switch (tool) {
    case Tool::ananicy:
      return import_ananicy(files);
    case Tool::system76:
      return import_system76(files);
    case Tool::gamemode:
      return import_gamemode(files);
    case Tool::cgrules:
      break;
  }
  return import_cgrules(files);
}

}  // namespace

Result<Imported> import_from(Tool tool, std::span<const SourceFile> files) {
  auto imported = import_of(tool, files);
  if (!imported) return Error(imported.error().code(), as_text(imported.error().context()));
  leave_out_unsayable(*imported);
  return imported;
}

std::string policy_text(const Imported& imported, Tool tool, std::string_view from) {
  std::string out = "# Made by `swapctl policy import " + std::string(tool_words.of(tool)) + "` from " + as_text(from) +
                    ".\n# Beside each pattern stands where it comes from.\n";
  std::set<std::string> classes;
  for (const ImportedRule& rule : imported.rules)
    if (!rule.class_name.empty() && rule.manage) classes.insert(rule.class_name);
  for (const std::string& one : classes) out += "\n[class." + one + "]\ndescription = \"imported\"\n";
  Writer writer;
  for (const ImportedRule& rule : imported.rules) writer.rule(rule);
  out += writer.take();
  if (!imported.unsaid.empty()) out += "\n# Not taken over:\n";
  for (const Unsaid& one : imported.unsaid)
    out += "# " + text_of(one.place) + ": " + as_text(one.what) + ": " + as_text(one.why) + "\n";
  return out;
}

}  // namespace swapd::policy
