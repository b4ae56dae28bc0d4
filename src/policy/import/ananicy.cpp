// Ananicy's rules: a JSON object a line, '#' before what is none (ananicy-cpp, README). Types first, wherever they
// stand: a rule has what its type says, and its own values over that.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "policy/import/imported.h"

namespace swapd::policy {
namespace {

using Json = nlohmann::json;

class AnanicyImporter {
 public:
  void line(const SourcePlace& place, std::string_view text) {
    const auto begin = text.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos || text[begin] == '#') return;
    text = text.substr(begin);
    // The tool, too, leaves out text that follows the object.
    const auto end = text.rfind('}');
    Json object = Json::parse(text.substr(0, end == std::string_view::npos ? end : end + 1), nullptr, false);
    if (!object.is_object()) return out_.leave_out(place, shown(text), "it is no JSON object");
    if (object.contains("name"))
      rules_.push_back({place, std::move(object)});
    else if (object.contains("type"))
      types_.insert_or_assign(text_in(object, "type"), object);
    else if (object.contains("cgroup"))
      out_.leave_out(place, "control group " + text_in(object, "cgroup"),
                     "swapd has no CPU quotas; give the unit or slice CPUQuota= (systemd.resource-control(5))");
    else
      out_.leave_out(place, shown(text), "it has neither name nor type");
  }

  Imported finish() {
    find_last_ones();
    for (const Rule& rule : rules_) add(rule);
    return std::move(out_);
  }

 private:
  struct Rule {
    SourcePlace place;
    Json object;
  };

  static std::string text_in(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
  }
  static std::string shown(std::string_view text) { return "'" + std::string(text.substr(0, 60)) + "'"; }

  static bool says_the_same(Json one, Json other) {
    one.erase("name");
    other.erase("name");
    return one == other;
  }

  // The last of several rules for one name counts.
  void find_last_ones() {
    for (std::size_t i = 0; i < rules_.size(); ++i) last_[comm_of(text_in(rules_[i].object, "name"))] = i;
  }

  void add(const Rule& rule) {
    const std::string program = text_in(rule.object, "name"), type = text_in(rule.object, "type");
    const std::string comm = comm_of(program);
    if (comm.empty()) return out_.leave_out(rule.place, "a rule", "its name is empty or no text");
    if (const Rule& last = rules_[last_.at(comm)]; &last != &rule)
      return says_the_same(rule.object, last.object)
                 ? void()
                 : out_.leave_out(rule.place, program,
                                  "a later rule is for the same name, as far as the kernel keeps it: " +
                                      last.place.file + ":" + std::to_string(last.place.line));
    ProgramSettings settings;
    if (!type.empty()) {
      const auto known = types_.find(type);
      if (known == types_.end()) return out_.leave_out(rule.place, program, "there is no type '" + type + "'");
      take(rule.place, program, known->second, false, settings);
    }
    take(rule.place, program, rule.object, true, settings);
    if (settings == ProgramSettings{}) return out_.leave_out(rule.place, program, "nothing is left to be set");
    ImportedRule& group = group_of(type, settings);
    group.patterns.push_back({.key = "comm", .glob = escaped(comm), .place = rule.place});
  }

  // A name is a text, not a pattern: what a pattern means something by stands for any byte.
  static std::string escaped(std::string comm) {
    std::ranges::replace_if(
        comm, [](char c) { return c == '*' || c == '!'; }, '?');
    return comm;
  }

  ImportedRule& group_of(const std::string& type, const ProgramSettings& settings) {
    const std::string name = class_name_of(type.empty() ? "ananicy" : type);
    auto& of_name = groups_[name];
    for (const std::size_t at : of_name)
      if (out_.rules[at].settings == settings) return out_.rules[at];
    of_name.push_back(out_.rules.size());
    return out_.rules.emplace_back(ImportedRule{
        .name = name, .class_name = type.empty() ? "" : name, .settings = settings, .manage = true, .patterns = {}});
  }

  // say: of what cannot be said, a type's own is said once, not for each rule.
  void take(const SourcePlace& place, const std::string& program, const Json& object, bool own,
            ProgramSettings& settings) {
    const auto unsaid = [&](const std::string& what, const std::string& why) {
      if (own || said_.insert(text_in(object, "type") + what).second)
        out_.leave_out(place, (own ? program : "type " + text_in(object, "type")) + ": " + what, why);
    };
    const auto number = [&](const char* key, int low, int high, std::optional<int>& to) {
      const auto found = object.find(key);
      if (found == object.end()) return;
      if (!found->is_number_integer()) return unsaid(key, "it is no whole number");
      const auto value = found->get<std::int64_t>();
      if (value < low || value > high)
        return unsaid(key, "it must be " + std::to_string(low) + " to " + std::to_string(high));
      to = static_cast<int>(value);
    };
    number("nice", -20, 19, settings.nice);
    number("rtprio", 1, 99, settings.realtime);
    number("ionice", 0, 7, settings.io_priority);
    number("oom_score_adj", -1000, 1000, settings.oom_score_adj);
    if (const std::string word = text_in(object, "sched"); !word.empty()) {
      if (const auto policy = sched_called(word))
        settings.sched = policy;
      else
        unsaid("sched " + word, "swapd has other, batch, idle, fifo and rr");
    }
    if (const std::string word = text_in(object, "ioclass"); !word.empty() && word != "none") {
      if (const auto io_class = io_class_called(word))
        settings.io_class = io_class;
      else
        unsaid("ioclass " + word, "there are realtime, best-effort and idle");
    }
    for (const auto& [key, why] : {std::pair("cgroup", "swapd moves no program to another control group"),
                                   std::pair("latency_nice", "no kernel of today has it; slice_ms is near to it"),
                                   std::pair("cpuset", "swapd sets no affinity of programs")})
      if (object.contains(key)) unsaid(key, why);
  }

  Imported out_;
  std::map<std::string, Json> types_;
  std::vector<Rule> rules_;
  std::unordered_map<std::string, std::size_t> last_;
  std::map<std::string, std::vector<std::size_t>> groups_;
  std::set<std::string> said_;
};

}  // namespace

Result<Imported> import_ananicy(std::span<const SourceFile> files) {
  AnanicyImporter importer;
  for (const SourceFile& file : files) {
    const std::string_view text = file.text;
    unsigned line = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      importer.line({file.name, ++line}, text.substr(at, end - at));
      at = end + 1;
    }
  }
  return importer.finish();
}

}  // namespace swapd::policy
