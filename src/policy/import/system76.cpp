// system76-scheduler's configuration (its README, "Process Priority Assignments"): profiles with their programs, and
// exceptions. There a program's path counts before its name, and both before conditions.
#include <algorithm>
#include <map>

#include "policy/import/imported.h"
#include "policy/import/kdl.h"
#include "policy/schema.h"

namespace swapd::policy {
namespace {

class System76Importer {
 public:
  void document(const std::string& file, const std::vector<KdlNode>& nodes) {
    file_ = file;
    for (const KdlNode& node : nodes) {
      if (node.name == "process-scheduler") {
        const bool off = node.property("enable") != nullptr && node.property("enable")->text == "false";
        if (off)
          leave_out(node, "process-scheduler", "it is switched off there");
        else
          document(file, node.children);
      } else if (node.name == "assignments") {
        for (const KdlNode& profile : node.children) this->profile(profile);
      } else if (node.name == "exceptions") {
        for (const KdlNode& one : node.children) exception(one);
      } else if (node.name == "cfs-profiles") {
        leave_out(node, "cfs-profiles", "swapd leaves the kernel's scheduler as it is");
      } else if (node.name == "autogroup-enabled") {
        leave_out(node, "autogroup-enabled", "set kernel.sched_autogroup_enabled by sysctl.d(5)");
      } else if (node.name != "version" && node.name != "refresh-rate" && node.name != "execsnoop") {
        leave_out(node, node.name, "swapd has nothing like it");
      }
    }
  }

  Imported finish() {
    for (auto* part : {&exceptions_, &by_path_, &by_name_, &by_condition_})
      std::ranges::move(*part, std::back_inserter(out_.rules));
    return std::move(out_);
  }

 private:
  struct Profile {
    ProgramSettings settings;
    std::vector<ImportedPattern> excluded;  // as negative patterns
  };

  [[nodiscard]] SourcePlace place(const KdlNode& node) const { return {file_, node.line}; }
  void leave_out(const KdlNode& node, std::string what, std::string why) {
    out_.leave_out(place(node), std::move(what), std::move(why));
  }

  void profile(const KdlNode& node) {
    Profile& profile = profiles_[node.name];
    take(node, profile.settings);
    if (node.name == "foreground" || node.name == "background" || node.name == "pipewire")
      leave_out(node, "profile " + node.name,
                node.name == "pipewire" ? "swapd does not ask PipeWire which programs it serves"
                                        : "swapd does not ask the desktop which program is in the foreground");
    for (const KdlNode& one : node.children)
      if (one.name == "exclude") exclude(one, profile);
    for (const KdlNode& one : node.children)
      if (one.name != "exclude") assign(node.name, one, profile);
  }

  void assign(const std::string& name, const KdlNode& node, const Profile& profile) {
    ProgramSettings settings = profile.settings;
    take(node, settings);
    if (settings == ProgramSettings{}) return leave_out(node, node.name, "nothing is set for it");
    ImportedRule rule{.name = class_name_of(name),
                      .class_name = class_name_of(name),
                      .settings = settings,
                      .manage = true,
                      .patterns = {}};
    if (node.name == "include" || node.name == "*") {
      if (!conditions(node, rule.patterns)) return;
      std::ranges::copy(profile.excluded, std::back_inserter(rule.patterns));
      by_condition_.push_back(std::move(rule));
      return;
    }
    const bool path = node.name.starts_with('/');
    rule.patterns.push_back(
        {.key = path ? "exe" : "comm", .glob = path ? node.name : comm_of(node.name), .place = place(node)});
    add(path ? by_path_ : by_name_, std::move(rule));
  }

  // To a rule that says the same of other programs.
  static void add(std::vector<ImportedRule>& rules, ImportedRule rule) {
    const auto known = std::ranges::find_if(rules, [&](const ImportedRule& one) {
      return one.name == rule.name && one.settings == rule.settings && one.manage == rule.manage;
    });
    if (known == rules.end())
      rules.push_back(std::move(rule));
    else
      known->patterns.push_back(std::move(rule.patterns.front()));
  }

  void exclude(const KdlNode& node, Profile& profile) {
    std::vector<ImportedPattern> found;
    if (!conditions(node, found)) return;
    if (found.size() != 1)
      return leave_out(node, "exclude", "a rule leaves out what fits one condition, not several at once");
    ImportedPattern& one = found.front();
    one.glob = one.glob.starts_with('!') ? one.glob.substr(1) : "!" + one.glob;
    profile.excluded.push_back(std::move(one));
  }

  void exception(const KdlNode& node) {
    ImportedRule rule{.name = "exceptions", .class_name = "", .settings = {}, .manage = false, .patterns = {}};
    if (node.name == "include") {
      if (!conditions(node, rule.patterns)) return;
      if (rule.patterns.size() > 1) return exceptions_.push_back(std::move(rule));
      rule.name += "-" + std::string(rule.patterns.front().key);
      return add(exceptions_, std::move(rule));
    }
    const bool path = node.name.starts_with('/');
    rule.name = path ? "exceptions-path" : "exceptions-name";
    rule.patterns.push_back(
        {.key = path ? "exe" : "comm", .glob = path ? node.name : comm_of(node.name), .place = place(node)});
    add(exceptions_, std::move(rule));
  }

  // False: there is none, or one that a rule cannot say.
  bool conditions(const KdlNode& node, std::vector<ImportedPattern>& out) {
    for (const auto& [key, value] : node.properties) {
      if (key == "nice" || key == "sched" || key == "io") continue;
      std::string_view in_policy;
      for (const auto& [theirs, ours] : {std::pair("name", "comm"), std::pair("parent", "parent"),
                                         std::pair("descends", "descends"), std::pair("cgroup", "cgroup")})
        if (key == theirs) in_policy = ours;
      if (in_policy.empty()) {
        leave_out(node, node.name, "there is no condition '" + key + "'");
        return false;
      }
      std::string glob = value.text;
      if (in_policy != "cgroup") {
        const bool negative = glob.starts_with('!');
        const std::string name = glob.substr(negative ? 1 : 0);
        glob = (negative ? "!" : "") + (name.find('*') == std::string::npos ? comm_of(name) : cut_as_comm(name));
      }
      out.push_back({.key = in_policy, .glob = std::move(glob), .place = place(node)});
    }
    if (out.empty()) leave_out(node, node.name, "it has no condition");
    return !out.empty();
  }

  void take(const KdlNode& node, ProgramSettings& settings) {
    for (const auto& [key, value] : node.properties) {
      if (key == "nice") {
        const auto nice = whole_number(value.text);
        if (nice && *nice >= -20 && *nice <= 19)
          settings.nice = nice;
        else
          leave_out(node, "nice=" + value.text, "it must be -20 to 19");
      } else if (key == "sched") {
        take_sched(node, value, settings);
      } else if (key == "io") {
        take_io(node, value, settings);
      }
    }
  }

  void take_sched(const KdlNode& node, const KdlValue& value, ProgramSettings& settings) {
    const auto policy = sched_called(value.type.empty() ? value.text : value.type);
    if (!policy) return leave_out(node, "sched=" + value.text, "swapd has other, batch, idle, fifo and rr");
    settings.sched = policy;
    settings.realtime = value.type.empty() ? std::nullopt : whole_number(value.text);
  }

  void take_io(const KdlNode& node, const KdlValue& value, ProgramSettings& settings) {
    const auto io_class = io_class_called(value.type.empty() ? value.text : value.type);
    if (!io_class) return leave_out(node, "io=" + value.text, "there are realtime, best-effort and idle");
    settings.io_class = io_class;
    settings.io_priority = value.type.empty() ? std::nullopt : whole_number(value.text);
    if (settings.io_priority && (*settings.io_priority < 0 || *settings.io_priority > 7)) {
      leave_out(node, "io priority " + value.text, "it must be 0 to 7");
      settings.io_priority.reset();
    }
  }

  Imported out_;
  std::string file_;
  std::map<std::string, Profile> profiles_;
  std::vector<ImportedRule> exceptions_, by_path_, by_name_, by_condition_;
};

}  // namespace

Result<Imported> import_system76(std::span<const SourceFile> files) {
  System76Importer importer;
  for (const SourceFile& file : files) {
    const auto nodes = parse_kdl(file.text, file.name);
    if (!nodes) return nodes.error();
    importer.document(file.name, *nodes);
  }
  return importer.finish();
}

}  // namespace swapd::policy
