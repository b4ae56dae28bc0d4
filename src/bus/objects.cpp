#include "bus/objects.h"

#include <systemd/sd-bus.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <set>

namespace swapd::bus {
namespace {

constexpr std::string_view class_table = "class.";

// A text as TOML has it, without its quotes.
std::string unquoted(const std::string& value) {
  const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'');
  return quoted ? value.substr(1, value.size() - 2) : value;
}

struct Process {
  std::string comm, class_name;
  std::uint32_t threads = 0;
  std::set<pid_t> tids;
  bool borrows = false;
};

std::map<pid_t, Process> processes(const std::vector<ThreadView>& threads) {
  std::map<pid_t, Process> out;
  for (const ThreadView& t : threads) {
    Process& process = out[t.pid];
    ++process.threads;
    process.tids.insert(t.tid);
    process.borrows = process.borrows || !t.donated_by.empty();
    if (!process.comm.empty() && t.tid != t.pid) continue;
    process.comm = t.comm;
    process.class_name = t.class_name.empty() ? "default" : t.class_name;
  }
  return out;
}

void add_processes(Tree& tree, const std::map<pid_t, Process>& all, const std::vector<ThreadView>& threads,
                   const std::vector<pid_t>& away) {
  std::set<pid_t> lenders;
  for (const ThreadView& t : threads) lenders.insert(t.donated_by.begin(), t.donated_by.end());
  for (const auto& [pid, p] : all) {
    const bool lends = std::ranges::any_of(p.tids, [&](pid_t tid) { return lenders.contains(tid); });
    tree[process_path(pid)] = {process_interface,
                               {{"Pid", static_cast<std::uint32_t>(pid)},
                                {"Comm", p.comm},
                                {"Class", p.class_name},
                                {"Threads", p.threads},
                                {"Lends", lends},
                                {"Borrows", p.borrows},
                                {"Away", std::ranges::find(away, pid) != away.end()}}};
  }
}

// The limits in force for a class, by device and key as a policy has them, and the automatic one.
Settings limits_of(const ClassView& of) {
  Settings out;
  for (const ClassView::Limit& l : of.limits) out[l.device + "." + l.key] = std::to_string(l.value);
  if (of.automatic && of.automatic->limit) out["disk.auto"] = std::to_string(*of.automatic->limit);
  return out;
}

void add_classes(Tree& tree, const std::map<pid_t, Process>& all, const std::vector<SettingView>& settings,
                 const std::vector<ClassView>& views) {
  struct Class {
    std::string description;
    bool open = true;
    Settings settings, limits;
    ObjectPaths members;
  };
  std::map<std::string, Class> classes{{"default", {}}};
  for (const SettingView& s : settings) {
    if (!s.table.starts_with(class_table)) continue;
    const std::string rest = s.table.substr(class_table.size());
    const std::size_t end = rest.find('.');
    Class& one = classes[rest.substr(0, end)];
    if (s.key.empty()) continue;
    if (s.key == "description") one.description = unquoted(s.value);
    if (s.key == "open") one.open = s.value != "false";
    one.settings[end == std::string::npos ? s.key : rest.substr(end + 1) + "." + s.key] = s.value;
  }
  for (const ClassView& view : views) classes[view.name].limits = limits_of(view);
  for (const auto& [pid, process] : all) classes[process.class_name].members.push_back(process_path(pid));
  for (const auto& [name, one] : classes)
    tree[encoded_path(class_prefix, name)] = {class_interface,
                                              {{"Name", name},
                                               {"Description", one.description},
                                               {"Open", one.open},
                                               {"Settings", one.settings},
                                               {"Limits", one.limits},
                                               {"Processes", one.members}}};
}

void add_resources(Tree& tree, const WorldView& world) {
  std::map<std::string, ThreadIds> requesters;
  for (const ThreadView& t : world.threads)
    for (const WaitNode& wait : t.waiting_for)
      requesters[text(wait.resource)].emplace_back(static_cast<std::uint32_t>(t.pid),
                                                   static_cast<std::uint32_t>(t.tid));
  for (const ResourceView& r : world.resources) {
    const std::string name = text(r.resource);
    std::vector<Provides> providers;
    for (const ResourceView::Provider& p : r.providers)
      providers.push_back({static_cast<std::uint32_t>(p.pid), static_cast<std::uint32_t>(p.tid), p.confidence});
    tree[encoded_path(resource_prefix, name)] = {resource_interface,
                                                 {{"Name", name},
                                                  {"Kind", name.substr(0, name.find(':'))},
                                                  {"Requesters", requesters[name]},
                                                  {"Providers", std::move(providers)}}};
  }
}

}  // namespace

std::string process_path(pid_t pid) { return std::string(process_prefix) + "/" + std::to_string(pid); }

pid_t process_of(std::string_view path) {
  const std::string prefix = std::string(process_prefix) + "/";
  if (!path.starts_with(prefix)) return 0;
  const std::string_view number = path.substr(prefix.size());
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), pid);
  const bool whole = error == std::errc() && end == number.data() + number.size();
  return whole && pid > 0 && process_path(pid) == path ? pid : 0;
}

std::string encoded_path(const char* prefix, const std::string& name) {
  char* path = nullptr;
  if (sd_bus_path_encode(prefix, name.c_str(), &path) < 0) return prefix;
  const std::unique_ptr<char, decltype(&std::free)> owned(path, std::free);
  return path;
}

Tree objects_now(Backend& backend) {
  const WorldView world = backend.world();
  const std::map<pid_t, Process> all = processes(world.threads);
  Tree tree;
  add_processes(tree, all, world.threads, backend.brief().away);
  add_classes(tree, all, backend.policy(), backend.classes());
  add_resources(tree, world);
  return tree;
}

Object manager_now(Backend& backend) {
  const BriefView status = backend.brief();
  return {interface_name,
          {{"Observer", status.observer},
           {"Paused", status.paused},
           {"ManagedProcesses", static_cast<std::uint32_t>(status.managed_processes)},
           {"ManagedThreads", static_cast<std::uint32_t>(status.managed_threads)},
           {"DonationsActive", static_cast<std::uint32_t>(status.donations_active)},
           {"MemoryShort", status.memory_short}}};
}

Changes changes(const Tree& before, const Tree& now) {
  Changes out;
  for (const auto& [path, object] : before)
    if (!now.contains(path)) out.removed.push_back(path);
  for (const auto& [path, object] : now) {
    const auto old = before.find(path);
    if (old == before.end()) {
      out.added.push_back(path);
      continue;
    }
    for (const auto& [name, value] : object.properties)
      if (const auto was = old->second.properties.find(name);
          was == old->second.properties.end() || was->second != value)
        out.changed[path].push_back(name);
  }
  return out;
}

}  // namespace swapd::bus
