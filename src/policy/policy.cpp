// The list of tables and keys, with their ranges; docs/policy.md and policies/00-defaults.toml follow it.
#include "policy/policy.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>

#include "policy/io_rules.h"
#include "policy/nearest.h"
#include "policy/schema.h"

namespace swapd::policy {
namespace {

constexpr std::size_t largest_text = 8U << 20;

constexpr auto feedback_words = words<Feedback>({{"wait", Feedback::wait}, {"paper", Feedback::paper}});
constexpr auto history_words = words<History>({{"holders", History::holders}, {"calls", History::calls}});
constexpr auto watch_words =
    words<WatchMethod>({{"auto", WatchMethod::automatic}, {"perf", WatchMethod::perf}, {"poll", WatchMethod::poll}});

// For ModelRules and ModelOverrides alike. K is bounded so that a chain of eight products stays exact in a double.
template <typename Rules>
std::vector<KeyRule> model_keys(Rules& to) {
  return {whole<std::uint16_t>("confidence", to.confidence, 1, 1000),
          milliseconds("quantum_ms", to.quantum, 0.1, 60'000), whole<std::uint16_t>("providers", to.providers, 1, 1000),
          word("feedback", to.feedback, feedback_words), flag("counts", to.counts)};
}

KeyRule coschedule_key(Coschedule& to) {
  return {"coschedule", [&to](const toml::node& node) -> Wrong {
            const auto* said = node.as_boolean();
            const auto* text = node.as_string();
            if (said == nullptr && (text == nullptr || text->get() != "auto"))
              return "must be \"auto\", true or false, not " + shown(node);
            to = said == nullptr ? Coschedule::automatic : said->get() ? Coschedule::on : Coschedule::off;
            return {};
          }};
}

// For DonationPolicy and DonationOverrides alike.
template <typename Rules>
std::vector<KeyRule> donation_keys(Rules& to) {
  return {flag("strict", to.strict),
          flag("realtime", to.realtime),
          whole<std::uint8_t>("ceiling", to.ceiling, 1, 92),
          real("ceiling_share", to.ceiling_share, 0.01, 1),
          milliseconds("ceiling_window_ms", to.ceiling_window, 10, 60'000),
          flag("cross_user", to.cross_user),
          flag("group_action", to.group_action),
          whole<std::uint32_t>("weight_above", to.weight_above, 0, 10'000),
          milliseconds("linger_ms", to.linger, 0, 100),
          milliseconds("conversation_ms", to.conversation, 0, 10'000)};
}

std::vector<KeyRule> observe_keys(ObservePolicy& to) {
  return {word("history", to.history, history_words),
          word("watch", to.watch, watch_words),
          milliseconds("poll_period_ms", to.poll_period, 0.1, 1000),
          flag("trap_kill", to.trap_kill),
          real("budget", to.budget, 0.005, 1),
          milliseconds("guard_stale_ms", to.guard_stale, 20, 10'000),
          list_of_names("protected", to.never, 15, 100)};
}

std::vector<KeyRule> quota_keys(QuotaPolicy& to) {
  return {whole<std::uint32_t>("processes", to.processes, 1, 1'000'000),
          whole<std::uint32_t>("threads", to.threads, 1, 1'000'000),
          whole<std::uint32_t>("records", to.records, 1000, 100'000'000),
          whole<std::uint32_t>("requests", to.requests, 1, 1'000'000),
          real("lent_share", to.lent_share, 0.01, 1),
          milliseconds("lent_window_ms", to.lent_window, 100, 60'000)};
}

std::vector<KeyRule> memory_keys(MemoryPolicy& to) {
  return {flag("on", to.on), milliseconds("quantum_ms", to.quantum, 1000, 600'000),
          milliseconds("stays_ms", to.stays, 0, 600'000)};
}

std::vector<KeyRule> level_keys(LevelRules& to) {
  return {flag("on", to.on), whole<int>("nice", to.nice, 1, 5), flag("display", to.display)};
}

std::vector<KeyRule> class_keys(ClassRules& to) {
  std::vector<KeyRule> keys = {line_of_text("description", to.description, 200), flag("open", to.open),
                               coschedule_key(to.coschedule)};
  std::ranges::move(donation_keys(to.donation), std::back_inserter(keys));
  for (const char* key : {"model", "io", "levels"}) keys.push_back(only_table(key));
  return keys;
}

constexpr Word<SchedPolicy> ordinary_classes[] = {
    {"other", SchedPolicy::other}, {"batch", SchedPolicy::batch}, {"idle", SchedPolicy::idle}};
constexpr Words<SchedPolicy, 3> sched_words(ordinary_classes);
constexpr auto io_class_words =
    words<IoClass>({{"realtime", IoClass::realtime}, {"best-effort", IoClass::best_effort}, {"idle", IoClass::idle}});

// The three ways to say how important a program is, as `swapctl run` has them.
struct Importance {
  std::optional<std::int8_t> nice;
  std::optional<std::uint8_t> fifo, rr;
};

std::vector<KeyRule> match_keys(MatchRule& to, Importance& importance) {
  return {globs("exe", to.exe),
          globs_of_comms("comm", to.comm),
          globs("cmdline", to.cmdline),
          globs("user", to.user),
          globs("cgroup", to.cgroup),
          globs("unit", to.unit),
          globs("container", to.container),
          globs_of_comms("parent", to.parent),
          globs_of_comms("descends", to.descends),
          line_of_text("class", to.class_name, 64),
          whole<std::int8_t>("nice", importance.nice, -20, 19),
          whole<std::uint8_t>("fifo", importance.fifo, 1, 92),
          whole<std::uint8_t>("rr", importance.rr, 1, 92),
          word("sched", to.sched, sched_words),
          milliseconds("slice_ms", to.slice, 0.1, 100),
          word("io_class", to.io_class, io_class_words),
          whole<std::uint8_t>("io_priority", to.io_priority, 0, 7),
          whole<std::int16_t>("oom_score_adj", to.oom_score_adj, -1000, 1000),
          flag("keep_own", to.keep_own),
          flag("manage", to.manage)};
}

std::optional<SchedAttr> attributes(const Importance& importance) {
  if (importance.nice) return SchedAttr{.nice = *importance.nice};
  if (importance.fifo) return SchedAttr{.policy = SchedPolicy::fifo, .rt_priority = *importance.fifo};
  if (importance.rr) return SchedAttr{.policy = SchedPolicy::rr, .rt_priority = *importance.rr};
  return {};
}

// The kinds that a [model.KIND] may name. No thread provides an unknown resource, so there is nothing to set for it.
std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  for (std::size_t k = 0; k < resource_kinds; ++k)
    if (const auto kind = static_cast<ResourceKind>(k); kind != ResourceKind::unknown) names.push_back(name(kind));
  return names;
}

std::optional<ResourceKind> kind_called(std::string_view word) {
  const std::vector<std::string_view> names = kind_names();
  const auto found = std::ranges::find(names, word);
  if (found == names.end()) return {};
  return static_cast<ResourceKind>(found - names.begin());
}

// Names go into file names, bus paths and log lines later on.
bool good_class_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, good);
}

class Parser {
 public:
  Parser(Policy& policy, const Complaint& complaint) : policy_(policy), complaint_(complaint) {}

  Status document(const toml::table& root) {
    static constexpr std::array<std::string_view, 8> tables = {"model",   "donation", "observe", "quota",
                                                               "shaping", "memory",   "class",   "match"};
    for (const Entry& entry : entries(root)) {
      const toml::table* table = entry.node->as_table();
      if (std::ranges::find(tables, entry.key) == tables.end()) return unknown_at_top(entry, table != nullptr, tables);
      if (table == nullptr)
        return complaint_.at(entry.line, "[" + std::string(entry.key) + "] must be a table, not " + shown(*entry.node));
      if (Status read = one_table(entry.key, *table); !read) return read;
    }
    if (Status known = known_classes(root); !known) return known;
    if (Status known = known_protected(root); !known) return known;
    return sensible_classes(root);
  }

 private:
  Status unknown_at_top(const Entry& entry, bool table, std::span<const std::string_view> tables) const {
    const std::string word = printable(entry.key);
    if (table)
      return complaint_.at(entry.line, "unknown table [" + word + "]" + suggestion(entry.key, tables, "[", "]"));
    return complaint_.at(entry.line,
                         "key '" + word +
                             "' stands before the first table; write it under [model], "
                             "[donation], [observe], [quota], [shaping], [memory], [class.NAME] or [match.NAME]");
  }

  Status one_table(std::string_view key, const toml::table& table) {
    if (key == "model") return model(table, "model", model_keys(policy_.model), policy_.kinds);
    if (key == "donation") return donation(table);
    if (key == "observe") return read_table(table, key, observe_keys(policy_.observe), complaint_);
    if (key == "quota") return read_table(table, key, quota_keys(policy_.quota), complaint_);
    if (key == "memory") return read_table(table, key, memory_keys(policy_.memory), complaint_);
    if (key == "shaping")
      return read_table(table, key, std::vector{milliseconds("slice_ms", policy_.shaping.slice, 1, 10'000)},
                        complaint_);
    return key == "class" ? classes(table) : matches(table);
  }

  Status model(const toml::table& table, const std::string& name, const std::vector<KeyRule>& general,
               std::map<ResourceKind, ModelOverrides>& kinds) {
    // A table inside [model], or anything under a kind's name, is meant as [model.KIND].
    const auto of_kind = [](const Entry& e) { return e.node->is_table() || kind_called(e.key).has_value(); };
    const auto is_key = [&](const Entry& e) {
      return std::ranges::find(general, e.key, &KeyRule::key) != general.end();
    };
    if (Status read =
            read_table(table, name, general, complaint_, [&](const Entry& e) { return of_kind(e) && !is_key(e); });
        !read)
      return read;
    for (const Entry& entry : entries(table)) {
      if (!of_kind(entry) || is_key(entry)) continue;
      const std::optional<ResourceKind> kind = kind_called(entry.key);
      const std::string where = name + "." + printable(entry.key);
      if (!kind)
        return complaint_.at(entry.line, "unknown resource kind '" + printable(entry.key) + "' in [" + where + "]" +
                                             suggestion(entry.key, kind_names()));
      const toml::table* rules = entry.node->as_table();
      if (rules == nullptr)
        return complaint_.at(entry.line, "[" + where + "] must be a table, not " + shown(*entry.node));
      if (Status read = read_table(*rules, where, model_keys(kinds[*kind]), complaint_); !read) return read;
    }
    return Done{};
  }

  Status donation(const toml::table& table) {
    if (Status read = read_table(table, "donation", donation_keys(policy_.donation), complaint_); !read) return read;
    if (!policy_.donation.strict || policy_.donation.realtime) return Done{};
    // Refused and not ignored: a policy that promises what it then forbids would boost no thread (docs/design.md,
    // Donation).
    for (const Entry& entry : entries(table))
      if (entry.key == "strict" || entry.key == "realtime")
        return complaint_.at(entry.line,
                             "'strict = true' in [donation] lends real-time priorities, which "
                             "'realtime = false' forbids");
    return Done{};
  }

  Status classes(const toml::table& table) {
    for (const Entry& entry : entries(table)) {
      const std::string where = "class." + printable(entry.key);
      const toml::table* rules = entry.node->as_table();
      if (rules == nullptr)
        return complaint_.at(entry.line, "'" + printable(entry.key) + "' stands in [class] itself; write [class.NAME]");
      if (!good_class_name(entry.key))
        return complaint_.at(entry.line, "the name in [" + where + "] must be 1 to 64 letters, digits, '-' or '_'");
      ClassRules& own = policy_.classes[std::string(entry.key)];
      const auto is_table = [](const Entry& e) {
        return (e.key == "model" || e.key == "io" || e.key == "levels") && e.node->is_table();
      };
      if (Status read = read_table(*rules, where, class_keys(own), complaint_, is_table); !read) return read;
      if (const toml::table* io = (*rules)["io"].as_table())
        if (Status read = read_io(*io, where + ".io", own.io, complaint_); !read) return read;
      if (const toml::table* levels = (*rules)["levels"].as_table())
        if (Status read = read_table(*levels, where + ".levels", level_keys(own.levels), complaint_); !read)
          return read;
      const toml::table* inner = (*rules)["model"].as_table();
      if (inner == nullptr) continue;
      if (Status read = model(*inner, where + ".model", model_keys(own.model), own.kinds); !read) return read;
    }
    return Done{};
  }

  // Checks a class with all of its settings, of this file and of others. The line is that of the key that brought it
  // about, as far as it stands in this text.
  [[nodiscard]] Status sensible_classes(const toml::table& root) const {
    for (const auto& entry : policy_.classes) {
      const std::string& name = entry.first;
      const std::string where = "[class." + name + "]";
      const auto line_of = [&](std::initializer_list<std::string_view> keys) {
        for (const auto& table : {root["class"][name], root["donation"]})
          for (const std::string_view key : keys)
            if (const toml::table* found = table.as_table(); found != nullptr && found->contains(key))
              return found->find(key)->first.source().begin.line;
        return 1U;
      };
      if (const DonationPolicy donation = donation_of(policy_, name); donation.strict && !donation.realtime)
        return complaint_.at(line_of({"strict", "realtime"}),
                             "'strict = true' lends real-time priorities, which 'realtime = false' forbids: both hold "
                             "for " +
                                 where);
      if (entry.second.donation.cross_user == true && !entry.second.open)
        return complaint_.at(line_of({"cross_user"}),
                             "'cross_user' in " + where +
                                 " trusts whoever is in it: say 'open = false' besides, so that only root and the "
                                 "policy's rules put programs there, or 'open = true'");
    }
    return Done{};
  }

  Status matches(const toml::table& table) {
    for (const Entry& entry : entries(table)) {
      const std::string where = "match." + printable(entry.key);
      const toml::table* keys = entry.node->as_table();
      if (keys == nullptr)
        return complaint_.at(entry.line, "'" + printable(entry.key) + "' stands in [match] itself; write [match.NAME]");
      if (!good_class_name(entry.key))
        return complaint_.at(entry.line, "the name in [" + where + "] must be 1 to 64 letters, digits, '-' or '_'");
      auto named = std::ranges::find(policy_.rules, entry.key, &NamedRule::name);
      if (named == policy_.rules.end()) named = policy_.rules.insert(named, {std::string(entry.key), {}});
      if (Status read = match(*keys, where, entry.line, named->rule); !read) return read;
    }
    return Done{};
  }

  Status match(const toml::table& keys, const std::string& where, unsigned line, MatchRule& rule) {
    Importance importance;
    if (Status read = read_table(keys, where, match_keys(rule, importance), complaint_); !read) return read;
    const int said =
        int{importance.nice.has_value()} + int{importance.fifo.has_value()} + int{importance.rr.has_value()};
    if (said > 1) return complaint_.at(line, "[" + where + "] has more than one of 'nice', 'fifo' and 'rr'");
    if (const auto base = attributes(importance)) rule.base = base;
    if (rule.base && rule.base->realtime() && (rule.sched || rule.slice))
      return complaint_.at(line, "[" + where + "] has a real-time priority and '" +
                                     (rule.sched ? "sched" : "slice_ms") + "', which only other threads have");
    if (rule.io_class == IoClass::idle && rule.io_priority)
      return complaint_.at(line, "[" + where + "] has 'io_priority', which the I/O class 'idle' does not");
    for (const auto* patterns : {&rule.exe, &rule.comm, &rule.cmdline, &rule.user, &rule.cgroup, &rule.unit,
                                 &rule.container, &rule.parent, &rule.descends})
      if (!patterns->empty()) return Done{};
    return complaint_.at(line, "[" + where +
                                   "] would fit every program; give it 'exe', 'comm', 'cmdline', 'user', "
                                   "'cgroup', 'unit', 'container', 'parent' or 'descends'");
  }

  // The classes that the text's rules name, wherever in the text those stand.
  [[nodiscard]] Status known_classes(const toml::table& root) const {
    const toml::table* table = root["match"].as_table();
    if (table == nullptr) return Done{};
    std::vector<std::string_view> names;
    for (const auto& [name, rules] : policy_.classes) names.push_back(name);
    for (const Entry& entry : entries(*table)) {
      for (const Entry& key : entries(*entry.node->as_table())) {
        const auto* wanted = key.node->as_string();
        if (key.key != "class" || wanted == nullptr || policy_.classes.contains(wanted->get())) continue;
        return complaint_.at(key.line, "no class '" + printable(wanted->get()) + "' for [match." +
                                           printable(entry.key) + "]; write a [class." + printable(wanted->get()) +
                                           "]" + suggestion(wanted->get(), names));
      }
    }
    return Done{};
  }

  // By way of others.
  [[nodiscard]] bool protects_itself(const std::string& name) const {
    std::string at = name;
    for (std::size_t steps = 0; steps < policy_.classes.size(); ++steps) {
      const auto found = policy_.classes.find(at);
      if (found == policy_.classes.end() || !found->second.io.automatic.on()) return false;
      at = found->second.io.automatic.protects;
      if (at == name) return true;
    }
    return false;
  }

  // The same for those that are to be protected.
  [[nodiscard]] Status known_protected(const toml::table& root) const {
    const toml::table* table = root["class"].as_table();
    if (table == nullptr) return Done{};
    std::vector<std::string_view> names;
    for (const auto& [name, rules] : policy_.classes) names.push_back(name);
    for (const Entry& entry : entries(*table)) {
      const toml::table* rules = root["class"][entry.key]["io"]["auto"].as_table();
      const toml::node* wanted = rules == nullptr ? nullptr : rules->get("protects");
      const std::string name = wanted == nullptr ? "none" : wanted->value_or(std::string("none"));
      if (name != "none" && !policy_.classes.contains(name))
        return complaint_.at(wanted->source().begin.line, "no class '" + printable(name) + "' to protect for [class." +
                                                              printable(entry.key) + "]; write a [class." +
                                                              printable(name) + "]" + suggestion(name, names));
      if (wanted != nullptr && protects_itself(std::string(entry.key)))
        return complaint_.at(wanted->source().begin.line, "[class." + printable(entry.key) +
                                                              "] protects a class that protects it in turn: one of the "
                                                              "two must come first");
    }
    return Done{};
  }

  Policy& policy_;
  const Complaint& complaint_;
};

}  // namespace

Result<Policy> parse(std::string_view text, std::string_view file, const Policy& base) {
  const Complaint complaint(file);
  if (text.size() > largest_text) return complaint.at(1, "larger than 8 MiB: not a policy");
  toml::table root;
  try {  // the library as Debian builds it reports by exceptions; they end here
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return complaint.at(std::max(error.source().begin.line, 1U), printable(error.description()));
  }
  // Everything goes into a copy, so that a mistake on the last line leaves nothing half applied.
  Policy policy = base;
  if (Status read = Parser(policy, complaint).document(root); !read) return read.error();
  policy.classes.try_emplace("default");
  return policy;
}

}  // namespace swapd::policy
