#include <fmt/format.h>

#include <map>
#include <set>

#include "cli/failure.h"
#include "cli/render.h"
#include "cli/words.h"

namespace swapd::cli {
namespace {

constexpr std::string_view prefix = "class.";

// "class.desktop.model" → "desktop"; empty: the table is no class's.
std::string class_of(const std::string& table) {
  if (!table.starts_with(prefix)) return "";
  const std::string rest = table.substr(prefix.size());
  return rest.substr(0, rest.find('.'));
}

// A text as TOML has it, without its quotes.
std::string unquoted(const std::string& value) {
  return value.size() >= 2 && (value.front() == '"' || value.front() == '\'') ? value.substr(1, value.size() - 2)
                                                                              : value;
}

}  // namespace

std::string classes_json(const std::string& policy, const std::string& threads) {
  struct Class {
    std::string description;
    bool open = true;
    std::size_t threads = 0;
    Json settings = Json::array();
    std::map<long long, std::string> members;
  };
  std::map<std::string, Class> classes{{"default", {}}};
  const Json of_policy = Json::parse(policy), of_threads = Json::parse(threads);
  for (const Json& s : of_policy.at("settings")) {
    const std::string name = class_of(s.value("table", ""));
    if (name.empty()) continue;
    Class& one = classes[name];
    const std::string key = s.value("key", "");
    if (key == "description") one.description = unquoted(s.value("value", ""));
    if (key == "open") one.open = s.value("value", "") != "false";
    if (!key.empty()) one.settings.push_back(s);
  }
  for (const Json& t : of_threads.at("threads")) {
    const std::string name = t.value("class", "");
    Class& one = classes[name.empty() ? "default" : name];
    ++one.threads;
    std::string& comm = one.members[whole(t, "pid")];
    if (comm.empty() || t.at("pid") == t.at("tid")) comm = t.value("comm", "");
  }
  Json list = Json::array();
  for (const auto& [name, one] : classes) {
    Json members = Json::array();
    for (const auto& [pid, comm] : one.members) members.push_back({{"pid", pid}, {"comm", comm}});
    list.push_back({{"name", name},
                    {"description", one.description},
                    {"open", one.open},
                    {"processes", one.members.size()},
                    {"threads", one.threads},
                    {"settings", one.settings},
                    {"members", std::move(members)}});
  }
  return Json({{"classes", std::move(list)}}).dump();
}

std::string render_classes(const std::string& json) {
  const Json answer = Json::parse(json);
  const Json& classes = answer.at("classes");
  if (classes.size() != 1 || !answer.value("one", false)) {
    std::vector<std::vector<std::string>> rows = {{"CLASS", "PROCESSES", "THREADS", "JOINED BY", "DESCRIPTION"}};
    for (const Json& c : classes)
      rows.push_back({printable(c.value("name", "")), c.value("processes", Json(0)).dump(),
                      c.value("threads", Json(0)).dump(), c.value("open", true) ? "anybody" : "root and rules",
                      printable(c.value("description", ""))});
    return table({{}, {true}, {true}, {}, {}}, rows);
  }
  const Json& c = classes.front();
  std::string out, last;
  for (const Json& s : c.at("settings")) {
    if (const std::string name = printable(s.value("table", "")); name != last) {
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", name);
      last = name;
    }
    const std::string line = printable(s.value("key", "")) + " = " + printable(s.value("value", ""));
    out += fmt::format("{:<39} # {}\n", line, printable(s.value("where", "")));
  }
  if (out.empty()) out = "It says nothing of its own: what [model] and [donation] say holds.\n";
  out += fmt::format("\n{} processes, {} threads\n", c.value("processes", Json(0)).dump(),
                     c.value("threads", Json(0)).dump());
  for (const Json& member : c.at("members"))
    out += fmt::format("{:>7} {}\n", whole(member, "pid"), printable(member.value("comm", "")));
  return out;
}

}  // namespace swapd::cli
