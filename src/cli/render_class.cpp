#include <fmt/format.h>

#include <iterator>
#include <map>
#include <set>

#include "base/size.h"
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

// "disk both 10MiB/s".
std::string limits_text(const Json& c, std::string_view between) {
  std::string out;
  const Json limits = c.value("limits", Json::array());
  for (const Json& l : limits) {
    const std::string key = l.value("key", "");
    const long long value = l.value("value", 0LL);
    const bool count = key.ends_with("operations");
    out += fmt::format("{}{} {} {}{}", out.empty() ? "" : between, printable(l.value("device", "")), printable(key),
                       count ? std::to_string(value) : size_text(value), key == "burst" ? "" : "/s");
  }
  return out;
}

// The automatic limit: for which class, and how that class fares.
std::string automatic_text(const Json& a, const Paint& paint) {
  std::string out = "Automatic limit of its disks, for class " + printable(a.value("protects", ""));
  const auto size = [&](const char* key) { return a.contains(key) && a.at(key).is_number() ? whole(a, key) : 0; };
  std::string needs;
  if (const long long rate = size("need_rate"); rate > 0) needs += " " + human_size(rate) + "/s";
  const long long percent = size("need_wait_percent");
  if (needs.empty() || percent > 0)
    needs += fmt::format("{}to wait for I/O {} % of its time at the most", needs.empty() ? " " : ", and ",
                         percent > 0 ? percent : 50);
  out += ", which needs" + needs + ":\n  ";
  const long long limit = size("limit");
  out += limit > 0 ? human_size(limit) + "/s, " + printable(a.value("state", "")) : "none: it has that without";
  if (a.value("in_vain", false)) out += paint(Style::warning, ", the least there may be, and still too much");
  out += fmt::format("; {}/s, {:.0f} % waited\n", human_size(size("moved")), a.value("waited", 0.0) * 100);
  return out;
}

std::string devices_table(const Json& devices, const Paint& paint) {
  std::vector<std::vector<std::string>> rows = {
      {"DEVICE", "READ", "WRITTEN", "CACHED", "MAPPED", "CALLS", "DELAYED", "DELAYED FOR", "TOKENS"}};
  const auto size = [](const Json& d, const char* key) { return human_size(d.value(key, 0LL)); };
  for (const Json& d : devices) {
    const bool limited = d.contains("tokens") && d.at("tokens").is_number();
    rows.push_back({printable(d.value("device", "")), size(d, "read_bytes"), size(d, "written_bytes"),
                    size(d, "cached_bytes"), size(d, "mapped_bytes"), d.value("calls", Json(0)).dump(),
                    d.value("delayed_calls", Json(0)).dump(), fmt::format("{:.1f} s", d.value("delayed_s", 0.0)),
                    limited ? human_size(d.at("tokens").get<long long>()) : "-"});
  }
  return table({{}, {true}, {true}, {true}, {true}, {true}, {true}, {true}, {true}}, rows, paint);
}

// Threads that pay for what they have moved, the others of their class do not.
std::string debts_text(const Json& devices) {
  std::string out;
  for (const Json& d : devices) {
    const std::string device = printable(d.value("device", ""));
    for (const Json& debt : d.value("debts", Json::array()))
      out += fmt::format("Thread {} owes {} of {}, which it alone pays\n", whole(debt, "tid"),
                         human_size(debt.value("bytes", 0LL)), device);
    if (const long long lost = d.value("written_off_bytes", 0LL); lost > 0)
      out += fmt::format("{} of {} were owed by threads that have ended, and nobody pays\n", human_size(lost), device);
  }
  return out.empty() ? out : "\n" + out;
}

}  // namespace

std::string classes_json(const std::string& policy, const std::string& threads, const std::string& limits) {
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
  std::map<std::string, Json> of_limits;
  const Json all_limits = Json::parse(limits);
  for (const Json& c : all_limits.at("classes")) {
    const std::string name = c.value("name", "");
    of_limits[name] = c;
    classes.try_emplace(name);
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
    const auto limited = of_limits.find(name);
    if (limited == of_limits.end()) continue;
    for (const char* key : {"mode", "inherit", "mapped", "shaped", "limited", "origin", "auto", "limits", "devices"})
      if (limited->second.contains(key)) list.back()[key] = limited->second.at(key);
  }
  return Json({{"classes", std::move(list)}}).dump();
}

std::string render_classes(const std::string& json, const Paint& paint) {
  const Json answer = Json::parse(json);
  const Json& classes = answer.at("classes");
  if (classes.size() != 1 || !answer.value("one", false)) {
    std::vector<std::vector<std::string>> rows = {
        {"CLASS", "PROCESSES", "THREADS", "JOINED BY", "I/O LIMITS", "DESCRIPTION"}};
    for (const Json& c : classes)
      rows.push_back({printable(c.value("name", "")), c.value("processes", Json(0)).dump(),
                      c.value("threads", Json(0)).dump(), c.value("open", true) ? "anybody" : "root and rules",
                      limits_text(c, ", "), printable(c.value("description", ""))});
    return table({{}, {true}, {true}, {}, {}, {}}, rows, paint);
  }
  const Json& c = classes.front();
  std::string out, last;
  for (const Json& s : c.at("settings")) {
    if (const std::string name = printable(s.value("table", "")); name != last) {
      out += fmt::format("{}{}\n", out.empty() ? "" : "\n", paint(Style::heading, "[" + name + "]"));
      last = name;
    }
    const std::string line = printable(s.value("key", "")) + " = " + printable(s.value("value", ""));
    out += fmt::format("{:<39} {}\n", line, paint(Style::faint, "# " + printable(s.value("where", ""))));
  }
  if (out.empty())
    out = c.value("limited", false)
              ? "Of donations it says nothing of its own: what [model] and [donation] say holds.\n"
              : "It says nothing of its own: what [model] and [donation] say holds.\n";
  if (const std::string limits = limits_text(c, "\n  "); !limits.empty()) {
    const std::string origin = c.value("origin", "");
    out += fmt::format("\nI/O limits, {}{}:\n  {}\n",
                       c.value("mode", "") == "device" ? "of what the disk moves" : "of what calls move",
                       origin == "made"      ? ", of a class that was made"
                       : origin == "changed" ? ", changed since the policy was read"
                                             : "",
                       limits);
  }
  if (const Json a = c.value("auto", Json()); a.is_object()) out += "\n" + automatic_text(a, paint);
  if (const Json devices = c.value("devices", Json::array()); !devices.empty())
    out += "\n" + devices_table(devices, paint);
  out += debts_text(c.value("devices", Json::array()));
  out += fmt::format("\n{} processes, {} threads\n", c.value("processes", Json(0)).dump(),
                     c.value("threads", Json(0)).dump());
  for (const Json& member : c.at("members"))
    out += fmt::format("{:>7} {}\n", whole(member, "pid"), printable(member.value("comm", "")));
  return out;
}

}  // namespace swapd::cli
