#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/size.h"
#include "cli/failure.h"
#include "cli/render.h"
#include "cli/verbs/verbs.h"
#include "cli/words.h"

namespace swapd::cli {
namespace {

// The answers are of the same moment, as nearly as matters.
Result<std::string> classes(Client& client, const std::string& only) {
  Result<std::string> policy = client.policy();
  if (!policy) return policy;
  Result<std::string> threads = client.processes();
  if (!threads) return threads;
  Result<std::string> limits = client.classes();
  if (!limits) return limits;
  try {
    Json all = Json::parse(classes_json(*policy, *threads, *limits));
    if (only.empty()) return all.dump();
    for (Json& one : all["classes"])
      if (one.value("name", "") == only) return Json({{"classes", Json::array({one})}, {"one", true}}).dump();
  } catch (const Json::exception&) {
    return failure("cannot read the answers of swapd: is it another version?");
  }
  return user_mistake("no class '" + printable(only) + "': `swapctl class list` has them");
}

struct Options {
  std::string name;
  std::string device = "disk";
  bool network = false;
  std::vector<std::string> values;  // as `keys` has them; empty: not given
  std::vector<std::string> needs;   // as `auto_keys` has them
  std::string mode, inherit, mapped, favoured_wait, io_uring, shaped;
  std::uint32_t pid = 0;
  bool tree = false;
  bool allow_no_new_privs = false;
};

struct Key {
  const char* option;
  const char* key;
  const char* help;
};
constexpr Key keys[] = {
    {"--both", "both", "Reading and writing together: bytes a second, such as 10MiB; none takes the limit away"},
    {"--read", "read", "Reading"},
    {"--write", "write", "Writing"},
    {"--operations", "operations", "Calls a second, of both"},
    {"--read-operations", "read_operations", "Calls that read"},
    {"--write-operations", "write_operations", "Calls that write"},
    {"--burst", "burst", "Bytes that may go at once after a rest"},
};

constexpr Key auto_keys[] = {
    {"--protects", "protects",
     "Automatic limits: as high as leaves the members of this other class what they need; none ends that"},
    {"--need-rate", "rate", "What those need together: bytes a second"},
    {"--need-wait", "wait_percent", "How much of its time each of them may wait for I/O, in percent (50)"},
    {"--least", "least", "The automatic limit is never lower (64KiB)"},
};

CLI::App* add_verb(CLI::App& app, const char* name, const char* help) {
  CLI::App* verb = app.add_subcommand(name, help);
  verb->fallthrough();
  return verb;
}

void add_name(CLI::App& verb, Options& options) {
  verb.add_option("CLASS", options.name, "The class")->required()->type_name("");
}

void add_limits(CLI::App& verb, Options& options) {
  options.values.resize(std::size(keys));
  auto* device = verb.add_option("--device", options.device,
                                 "What the limits are for: a path on the disk, MAJOR:MINOR, or a network link; else "
                                 "they are for each disk that has none of its own")
                     ->type_name("DEVICE");
  verb.add_flag("--network", options.network, "They are for each network link that has none of its own")
      ->excludes(device);
  for (std::size_t i = 0; i < std::size(keys); ++i)
    verb.add_option(keys[i].option, options.values[i], keys[i].help)->type_name("N");
  options.needs.resize(std::size(auto_keys));
  for (std::size_t i = 0; i < std::size(auto_keys); ++i)
    verb.add_option(auto_keys[i].option, options.needs[i], auto_keys[i].help)
        ->type_name(i == 0 ? "CLASS" : "N")
        ->group("Automatic limits of its disks");
  const auto word = [&](const char* option, std::string& place, const char* help, std::vector<std::string> words) {
    verb.add_option(option, place, help)->check(CLI::IsMember(std::move(words)).description(""))->type_name("WORD");
  };
  word("--mode", options.mode, "Limits count what calls move (logical), or what the disk moves (device)",
       {"logical", "device"});
  word("--inherit", options.inherit, "Children join their parent's class, or get a new one that is like it",
       {"join", "new"});
  word("--mapped", options.mapped,
       "Pages of mapped files are paid at the program's next call, or it is frozen until they are",
       {"next-call", "freeze"});
  word("--favoured-wait", options.favoured_wait,
       "A provider that an important thread waits for is delayed all the same", {"true", "false"});
  word("--io-uring", options.io_uring, "Programs that start in the class may use io_uring, which is held as a whole",
       {"true", "false"});
  word("--shaped", options.shaped, "Programs that start in it may get limits later", {"true", "false"});
}

std::vector<Client::Limit> limits_of(const Options& options) {
  std::vector<Client::Limit> out;
  const std::string device = options.network ? "network" : options.device;
  for (std::size_t i = 0; i < std::size(keys); ++i)
    if (!options.values[i].empty()) out.push_back({device, keys[i].key, options.values[i]});
  for (std::size_t i = 0; i < std::size(auto_keys); ++i)
    if (!options.needs[i].empty()) out.push_back({"auto", auto_keys[i].key, options.needs[i]});
  const std::pair<const char*, const std::string*> words[] = {
      {"mode", &options.mode},         {"inherit", &options.inherit},
      {"mapped", &options.mapped},     {"favoured_wait", &options.favoured_wait},
      {"io_uring", &options.io_uring}, {"shaped", &options.shaped}};
  for (const auto& [key, value] : words)
    if (!value->empty()) out.push_back({"", key, *value});
  return out;
}

std::string too_small(const Options& options) {
  for (std::size_t i = 0; i < options.values.size(); ++i) {
    const std::string& value = options.values[i];
    const std::string_view key = keys[i].key;
    if (key.ends_with("operations")) continue;
    if (std::string why = unlikely_size(value, key != "burst"); !why.empty()) return why;
  }
  return "";
}

}  // namespace

Action declare_class(CLI::App& app, Context& context) {
  auto made = std::make_shared<Options>(), changed = std::make_shared<Options>(), other = std::make_shared<Options>();
  add_verb(app, "list", "The classes, and how many programs are in each");
  CLI::App* one = add_verb(app, "show", "What a class says, what it has moved, and who is in it");
  add_name(*one, *other);
  CLI::App* create = add_verb(app, "create", "Make a class");
  add_name(*create, *made);
  add_limits(*create, *made);
  CLI::App* set = add_verb(app, "set", "Change its limits, at once for who is in it");
  add_name(*set, *changed);
  add_limits(*set, *changed);
  CLI::App* remove = add_verb(app, "remove", "Remove a class that was made; its members are in \"default\" then");
  add_name(*remove, *other);
  CLI::App* join = add_verb(app, "join", "Put a running process into a class");
  add_name(*join, *other);
  CLI::App* leave = add_verb(app, "leave", "Put a process into \"default\"");
  for (CLI::App* verb : {join, leave}) {
    add_pid(*verb, other->pid, "The process, all its threads and whatever it starts from now on");
    verb->add_flag("--tree", other->tree, "With the descendants that it has already");
    verb->add_flag(
        "--allow-no-new-privs", other->allow_no_new_privs,
        "Where a filter must be installed and the process is not root's: setuid programs will not work in it");
  }
  app.require_subcommand(1, 1);
  app.footer(
      R"(Classes stand in the policy ([class.NAME]), or are made here and kept until they are removed. Programs come into
one by `run --class`, `enroll --class`, `class join`, or a rule. What a class with limits reads and writes is
delayed so that it keeps to them.

Examples:
  swapctl class list
  swapctl class create backup --both 20MiB
  swapctl class set backup --device /var --write 5MiB
  swapctl class set backup --network --both 1MiB
  swapctl class set backup --protects stream --need-rate 4MiB
  swapctl class join backup $(pidof -s rsync)
  swapctl run --class backup -- tar -cf /mnt/all.tar /home)");
  return [=, &context]() -> int {
    const auto pid = static_cast<pid_t>(other->pid);
    const Options& said = create->parsed() ? *made : *changed;
    if (const std::string mistake = too_small(said); !mistake.empty())
      return report(*context.err, user_mistake(mistake));
    if (create->parsed())
      return order(context, "making the class",
                   [&](Client& c) { return c.set_class(made->name, limits_of(*made), true); });
    if (set->parsed()) {
      if (limits_of(*changed).empty())
        return report(*context.err, user_mistake("give a limit to change; see swapctl class set --help"));
      return order(context, "changing the class",
                   [&](Client& c) { return c.set_class(changed->name, limits_of(*changed), false); });
    }
    if (remove->parsed())
      return order(context, "removing the class", [&](Client& c) { return c.remove_class(other->name); });
    if (join->parsed() || leave->parsed())
      return order(context, "joining", [&](Client& c) {
        return c.enroll(pid, other->tree, leave->parsed() ? "default" : other->name, other->allow_no_new_privs);
      });
    return show(
        context, [&](Client& c) { return classes(c, other->name); }, render_classes);
  };
}

}  // namespace swapd::cli
