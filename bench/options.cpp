#include "options.h"

#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "apps/apps.h"
#include "base/size.h"
#include "coscheduling/cosched_options.h"
#include "mechanisms/mechanism.h"
#include "memory/build.h"
#include "memory/thrash.h"
#include "response.h"
#include "thin_client/thin_client_options.h"

namespace swapd::bench {

namespace {

struct Raw {
  int client_nice = 0;
  int client_fifo = 50;
  std::string sessions = "same";
};

void common_options(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("--hogs", options.hogs,
                 "Endless loops at nice 0 on each CPU (of apps and chat: in all, free to move); a list measures each")
      ->delimiter(',')
      ->check(CLI::Range(0, 200));
  app.add_option("--cpus", options.cpus, "CPUs that the workload and the hogs share")->check(CLI::Range(1, 64));
  app.add_option("--iterations", options.iterations, "Iterations of the client")->check(CLI::Range(1, 200'000));
  app.add_option(
         "--repeat", options.repeat,
         "Repeats of each configuration, interleaved; the figures are medians (default 1; of client-server and "
         "shape-rivals 3, of multi-server and cascade 5 unless --iterations is given, of overhead 21, with bpf 11, of "
         "shape-overhead 21, of apps 7, with bpf 121, with --important client 21, of chat 5)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--under", options.under, "vanilla, hand-set, swapd")
      ->delimiter(',')
      ->check(CLI::IsMember({"vanilla", "hand-set", "swapd"}));
  app.add_option("--observe", options.observe, "swapd's observer")->check(CLI::IsMember({"auto", "bpf", "seccomp"}));
  app.add_option("--history", options.history, "swapd's history")->check(CLI::IsMember({"holders", "calls"}));
  auto* fifo =
      app.add_option("--client-fifo", raw.client_fifo, "The client's SCHED_FIFO priority")->check(CLI::Range(1, 99));
  app.add_option("--client-nice", raw.client_nice, "The client's nice value, instead of a real-time class")
      ->check(CLI::Range(-20, -1))
      ->excludes(fifo);
  app.add_option("--sessions", raw.sessions, "split: each process and hog in a session of its own")
      ->check(CLI::IsMember({"same", "split"}));
  app.add_flag("--strict", options.strict, "swapd lends real-time priorities to nice clients too");
  app.add_flag("--baseline", options.baseline, "Measure without hogs too (vanilla), for the to_idle column");
  app.add_flag("--json", options.json, "One JSON object a line");
  app.add_flag("--progress", options.progress, "Say on stderr what runs");
  app.add_option("--plot", options.plot, "Draw the figure into this SVG file");
  app.add_option("--swapd", options.swapd, "Path of swapd");
  app.add_option("--swapctl", options.swapctl, "Path of swapctl");
}

void work_option(CLI::App& app, Options& options) {
  app.add_option("--work-ms", options.work_ms, "CPU time of one computation")->check(CLI::Range(0.0, 10'000.0));
}

void mechanism_option(CLI::App& app, Options& options) {
  std::vector<std::string> names = {"all"};
  for (const auto name : mechanism_names()) names.emplace_back(name);
  app.add_option("--mechanism", options.mechanisms,
                 "How the answer comes, a list or all (with --observe bpf, mutexes too)")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
}

// In a build tree swapbench lies in bench/, the others in daemon/ and src/cli/; installed, in bin/ and sbin/.
std::string find_program(const std::string& name, std::initializer_list<const char*> places) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : places) {
    const auto path = self / place / name;
    if (::access(path.c_str(), X_OK) == 0) return path.lexically_normal();
  }
  return (self / *places.begin() / name).lexically_normal();
}

[[noreturn]] void refuse(const std::string& message) {
  std::fprintf(stderr, "swapbench: %s\n", message.substr(0, message.find('\n')).c_str());
  std::exit(2);
}

void parse_or_exit(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));
    refuse(error.what());
  }
}

int cpus_of_this_process() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void seconds_option(CLI::App& app, Options& options) {
  app.add_option("--seconds", options.seconds, "How long each measurement takes")->check(CLI::Range(0.1, 600.0));
}

void scale_options(CLI::App& app, Options& options) {
  Options::Scale& scale = options.scale;
  app.add_option("--threads", scale.threads, "Threads that sleep")->check(CLI::Range(1, 30'000));
  app.add_option("--resources", scale.resources, "Eventfds that they wait for")->check(CLI::Range(1, 1'000'000));
  app.add_option("--important", scale.important, "How many of the sleepers are important, per cent")
      ->check(CLI::Range(0, 100));
  app.add_option("--pairs", scale.pairs, "Pairs of threads that wake each other")->check(CLI::Range(1, 64));
  app.add_option("--rate", scale.rate, "Their waits and wakes a second; 0: without a pause")
      ->check(CLI::Range(0, 10'000'000));
  app.add_option("--settle", scale.settle_s, "Seconds that swapd has to come to rest before the pairs begin")
      ->check(CLI::Range(0.0, 600.0));
  seconds_option(app, options);
}

auto size_check() {
  return [](const std::string& text) {
    const auto bytes = parse_size(text);
    return bytes && *bytes >= 512 ? std::string() : "'" + text + "' is not a size such as 64KiB";
  };
}

void shape_options(CLI::App& app, Options& options) {
  app.add_option("--targets", options.targets, "disk-logical, disk-device, tcp, udp")
      ->delimiter(',')
      ->check(CLI::IsMember({"disk-logical", "disk-device", "tcp", "udp"}));
  app.add_option("--rates", options.rates, "Limits, bytes a second, a list")->delimiter(',')->check(size_check());
  app.add_option("--blocks", options.blocks, "Bytes a call, a list")->delimiter(',')->check(size_check());
  app.add_option("--members", options.members, "How many programs share the limit, a list")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  seconds_option(app, options);
}

void tap_options(CLI::App& app, Options& options) {
  app.add_option("--limits", options.limits, "Limits by hand to measure besides, bytes a second, a list")
      ->delimiter(',')
      ->check([](const std::string& text) {
        return parse_size(text) ? std::string() : "'" + text + "' is not a size such as 16MiB";
      });
  seconds_option(app, options);
}

void apps_options(CLI::App& app, Options& options) {
  std::vector<std::string> names;
  for (const auto& known : {app_names(), batch_names()}) names.insert(names.end(), known.begin(), known.end());
  app.add_option("--apps", options.apps, "Which, a list; build and ffmpeg, which end by themselves, are named alone")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  app.add_option(
         "--placement", options.placement,
         "drawn: all threads go to CPUs drawn by lot, twenty times a second, and the scheduler goes on from there; "
         "apart: the load generator on the first CPU, the server on the others; free: as the scheduler likes")
      ->check(CLI::IsMember({"drawn", "free", "apart"}));
  app.add_option("--important", options.important,
                 "client: the load generator is important (nice -10 where nothing else is given), the server managed "
                 "at nice 0, the hogs free to move between the CPUs; sleeper: swapd manages a sleeper of the client's "
                 "priority too, and therefore follows every switch and wake")
      ->check(CLI::IsMember({"client", "sleeper"}));
  app.add_option("--settle", options.settle_s,
                 "With bpf: seconds from the start or the end of swapd, under load, to what is measured (default 0.2; "
                 "with --important client 1)")
      ->check(CLI::Range(0.0, 60.0));
  seconds_option(app, options);
}

constexpr int max_chat_users = 500;  // in all rooms: four threads each

void chat_options(CLI::App& app, Options& options) {
  app.add_option("--rooms", options.chat.rooms, "Rooms")->check(CLI::Range(1, 100));
  app.add_option("--users", options.chat.users, "Users in a room")->check(CLI::Range(2, 100));
  app.add_option("--messages", options.chat.messages, "Messages that each user sends to their room")
      ->check(CLI::Range(1, 100'000));
}

void chat_defaults(const CLI::App& chosen, Options& options, Raw& raw) {
  if (options.chat.rooms * options.chat.users > max_chat_users)
    refuse(options.workload + ": --rooms times --users: at most " + std::to_string(max_chat_users));
  if (chosen.count("--cpus") == 0) options.cpus = cpus_of_this_process();
  if (chosen.count("--client-nice") + chosen.count("--client-fifo") == 0)
    raw.client_nice = options.workload == "soak" ? -10 : -20;
  if (options.workload == "soak") return;
  if (chosen.count("--under") == 0) options.under = {"vanilla", "hand-set", "swapd"};
  if (chosen.count("--hogs") == 0) options.hogs = {0, 10, 20};
  if (chosen.count("--repeat") == 0) options.repeat = 5;
}

void soak_defaults(const CLI::App& chosen, Options& options, Raw& raw) {
  chat_defaults(chosen, options, raw);
  if (chosen.count("--under") == 0) options.under = {"swapd"};
  if (options.under != std::vector<std::string>{"swapd"}) refuse("soak: it is swapd that is soaked");
  if (options.baseline) refuse("soak: there is nothing to compare with");
  if (chosen.count("--repeat") != 0) refuse("soak: --minutes tells how long; nothing is repeated");
  if (chosen.count("--hogs") == 0) options.hogs = {0, 4, 10, 2};
  if (chosen.count("--messages") == 0) options.chat.messages = 50;
  if (const auto missing = missing_program({"redis", "nginx"})) refuse(*missing);
}

void important_client_defaults(const CLI::App& chosen, Options& options, Raw& raw) {
  // With bpf swapd comes and goes under one load; with seccomp each run starts the server anew.
  const bool anew = options.observe == "seccomp";
  if (chosen.count("--under") == 0) options.under = {"vanilla", "hand-set", "swapd"};
  if (anew && chosen.count("--under") == 0) options.under = {"vanilla", "swapd"};
  if (anew && std::ranges::find(options.under, "hand-set") != options.under.end())
    refuse("apps: with --observe seccomp nothing is set by hand; give --under vanilla,swapd");
  if (anew && chosen.count("--settle") != 0) refuse("apps: --settle goes with --observe bpf");
  if (!anew) options.observe = "bpf";
  if (chosen.count("--settle") == 0) options.settle_s = 1;
  if (chosen.count("--hogs") == 0) options.hogs = {0};
  if (chosen.count("--seconds") == 0) options.seconds = anew ? 3 : 1;
  if (chosen.count("--repeat") == 0) options.repeat = anew ? 7 : 21;
  if (options.placement.empty()) options.placement = "free";
  if (chosen.count("--client-nice") + chosen.count("--client-fifo") == 0) raw.client_nice = -10;
}

void idle_apps_only(const CLI::App& chosen, const Options& options) {
  if (std::ranges::find(options.under, "hand-set") != options.under.end())
    refuse("apps: nothing is to be set by hand but with --important client");
  for (const char* option : {"--placement", "--important", "--settle"})
    if (chosen.count(option) != 0 && !in_turns(options))
      refuse("apps: " + std::string(option) + " goes with --observe bpf");
  if (chosen.count("--hogs") != 0) refuse("apps: --hogs goes with --important client");
  if (options.split) refuse("apps: --sessions goes with --important client");
}

void apps_defaults(const CLI::App& chosen, Options& options, Raw& raw) {
  if (options.apps.empty()) options.apps.assign(app_names().begin(), app_names().end());
  if (chosen.count("--cpus") == 0) options.cpus = cpus_of_this_process();
  const auto batches = std::ranges::count_if(options.apps, is_batch);
  if (batches != 0 && std::cmp_not_equal(batches, options.apps.size()))
    refuse("apps: build and ffmpeg are not measured together with servers");
  if (batches != 0 && client_is_important(options)) refuse("apps: build and ffmpeg have no client");
  if (client_is_important(options)) {
    important_client_defaults(chosen, options, raw);
  } else {
    idle_apps_only(chosen, options);
    options.hogs = {0};
    if (chosen.count("--seconds") == 0) options.seconds = in_turns(options) ? 0.3 : 5;
    if (chosen.count("--repeat") == 0) options.repeat = in_turns(options) ? 121 : 7;
    if (options.placement.empty() && in_turns(options) && options.cpus > 1) options.placement = "drawn";
  }
  if (options.cpus < 2 && (options.placement == "apart" || options.placement == "drawn"))
    refuse("apps: --placement " + options.placement + " needs two CPUs");
  if (const auto missing = missing_program(options.apps)) refuse(*missing);
}

// Nobody here is important enough to keep others from a CPU.
void scale_defaults(const CLI::App& chosen, Options& options, Raw& raw) {
  if (chosen.count("--under") == 0) options.under = {"swapd"};
  if (chosen.count("--hogs") == 0) options.hogs = {0};
  if (chosen.count("--cpus") == 0) options.cpus = cpus_of_this_process();
  if (chosen.count("--client-nice") == 0 && chosen.count("--client-fifo") == 0) raw.client_nice = -5;
}

// Idle and loaded, on every CPU; only swapd lends anything.
void latency_defaults(const CLI::App& chosen, Options& options) {
  if (chosen.count("--under") == 0) options.under = {"swapd"};
  if (options.under != std::vector<std::string>{"swapd"}) refuse("latency: nobody but swapd can be measured");
  if (chosen.count("--iterations") == 0) options.iterations = 200;
  if (options.iterations > static_cast<int>(max_windows))
    refuse("latency: --iterations: at most " + std::to_string(max_windows));
  if (chosen.count("--hogs") == 0) options.hogs = {0, 10};
  if (chosen.count("--cpus") == 0) options.cpus = cpus_of_this_process();
  if (chosen.count("--work-ms") == 0) options.work_ms = 25;
  if (options.baseline) refuse("latency: there is nothing to compare with");
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  Raw raw;
  CLI::App app("Measures what swapd does for programs that wait for starved ones (SWAP, NSDI 2004, section 5)",
               "swapbench");
  auto* client_server =
      app.add_subcommand("client-server", "A client waits for a server's computation, by each mechanism");
  auto* multi_server = app.add_subcommand("multi-server", "Five servers of unlike speed, one of which must answer");
  auto* cascade = app.add_subcommand("cascade", "A chain of processes, of which the last computes");
  auto* overhead = app.add_subcommand("overhead", "What watching costs: per trapped call, per iteration");
  auto* pipeline = app.add_subcommand("pipeline", "An important reader of 8 KiB chunks that take CPU time to make");
  auto* scale = app.add_subcommand("scale", "Many sleeping threads and resources, and pairs that wake each other");
  auto* apps =
      app.add_subcommand("apps", "The throughput of redis, PostgreSQL and nginx, and what swapd takes or gives");
  auto* chat = app.add_subcommand("chat", "Rooms of users who take turns: messages a second");
  auto* soak =
      app.add_subcommand("soak", "Chat, redis and nginx beside hogs that come and go, under one swapd all along");
  auto* thin_client = app.add_subcommand(
      "thin-client", "An important player in one of many VNC sessions, and its X server (SWAP, section 5.3)");
  auto* cosched = app.add_subcommand(
      "cosched", "Parallel jobs on a shared machine: latency, barrier, mixed, two-jobs (coscheduling, chapter 5)");
  auto* response =
      app.add_subcommand("response", "How long a program in a terminal takes to answer a key, beside busy loops");
  auto* thrash = app.add_subcommand("thrash", "Work of programs that together use more memory than there is");
  auto* build = app.add_subcommand("build", "A command, such as a parallel compile, in less memory than it needs");
  auto* latency = app.add_subcommand("latency", "From the requester's block to the provider's new attributes");
  auto* shape_accuracy = app.add_subcommand("shape-accuracy", "How well what a class moves keeps to its limit");
  auto* shape_overhead = app.add_subcommand("shape-overhead", "What a call costs that is shaped and not delayed");
  auto* shape_rivals =
      app.add_subcommand("shape-rivals", "Limits beside trickle's, the cgroups' block controller and ionice");
  auto* tap_disk =
      app.add_subcommand("tap-disk", "Two readers, and a reader and a writer, one of whom is limited step by step");
  auto* tap_network =
      app.add_subcommand("tap-network", "Two nginx under wrk over one link, one of which is limited step by step");
  auto* tap_stream = app.add_subcommand("tap-stream", "A film off a slow disk beside twelve cats: frames missed");
  shape_options(*shape_accuracy, options);
  tap_options(*tap_stream, options);
  for (auto* sub : {shape_rivals, tap_disk, tap_network}) seconds_option(*sub, options);
  shape_rivals->add_option("--rates", options.rates, "The limit, bytes a second")->expected(1)->check(size_check());
  for (auto* sub : {client_server, multi_server,   cascade,        overhead,     pipeline, latency,     scale,
                    apps,          chat,           soak,           thin_client,  cosched,  response,    thrash,
                    build,         shape_accuracy, shape_overhead, shape_rivals, tap_disk, tap_network, tap_stream}) {
    common_options(*sub, options, raw);
  }
  for (auto* sub : {client_server, cascade, latency, response}) work_option(*sub, options);
  response_options(*response, options);
  thrash_options(*thrash, options);
  build_options(*build, options);
  client_server->add_option("--server-nice", options.server_nice, "The server's own nice value (not by hand)")
      ->check(CLI::Range(-20, 19));
  client_server
      ->add_option("--wrong-providers", options.wrong_providers,
                   "Managed loops that swapd is made to take for the providers: what wrong evidence costs")
      ->check(CLI::Range(0, 64));
  for (auto* sub : {client_server, overhead}) mechanism_option(*sub, options);
  multi_server->add_option("--quantum-ms", options.quantum_ms, "swapd's T")->check(CLI::Range(1.0, 10'000.0));
  multi_server->add_option("--feedback", options.feedback, "swapd's feedback")->check(CLI::IsMember({"wait", "paper"}));
  for (auto* sub : {multi_server, cascade}) {
    sub->add_flag("--show-why", options.show_why, "Ask swapctl why in mid-wait and count whom it names");
  }
  cascade->add_option("--depth", options.depth, "Processes in the chain")->check(CLI::Range(1, 64));
  overhead->add_flag("--loaded", options.loaded, "Ten trapped calls every 20 ms of a nice-0 program among the hogs");
  pipeline->add_option("--chunk-us", options.chunk_us, "CPU time of a chunk; a list measures each")
      ->delimiter(',')
      ->check(CLI::Range(1.0, 100'000.0));
  latency->add_option("--resource", options.resources, "known: one pipe; unknown: a fresh one each time; a list")
      ->delimiter(',')
      ->check(CLI::IsMember({"known", "unknown"}));
  scale_options(*scale, options);
  apps_options(*apps, options);
  for (auto* sub : {chat, soak}) chat_options(*sub, options);
  soak->add_option("--minutes", options.minutes, "How long")->check(CLI::Range(0.05, 10'000.0));
  thin_client_options(*thin_client, options);
  cosched_options(*cosched, options);
  parse_or_exit(app, argc, argv);

  if (app.get_subcommands().size() != 1) {
    refuse(
        "give one workload: client-server, multi-server, cascade, overhead, pipeline, latency, scale, apps, chat, "
        "soak, thin-client, cosched, response, thrash, build, shape-accuracy, shape-overhead, shape-rivals, tap-disk, "
        "tap-network or "
        "tap-stream");
  }
  auto* chosen = app.get_subcommands().front();
  options.workload = chosen->get_name();
  options.split = raw.sessions == "split";
  // What one run of them shows is much of its own moment.
  if ((chosen == multi_server || chosen == cascade) && chosen->count("--iterations") + chosen->count("--repeat") == 0)
    options.repeat = 5;
  if (chosen == client_server && chosen->count("--repeat") == 0) options.repeat = 3;
  if (chosen == multi_server && chosen->count("--iterations") == 0) options.iterations = 15;
  if (chosen == pipeline && chosen->count("--iterations") == 0) options.iterations = 1000;
  if (chosen == overhead && chosen->count("--iterations") == 0) options.iterations = options.loaded ? 250 : 2000;
  const bool of_bpf = chosen == overhead && options.observe == "bpf";
  if (of_bpf && options.loaded)
    refuse("overhead: --loaded is about trapped calls, and with --observe bpf there are none");
  if (chosen == overhead && chosen->count("--repeat") == 0) options.repeat = options.loaded ? 1 : of_bpf ? 11 : 21;
  if (chosen == overhead && !options.loaded && chosen->count("--hogs") != 0)
    refuse("overhead: --hogs goes with --loaded");
  if (chosen == tap_stream && chosen->count("--seconds") == 0) options.seconds = 40;
  if (chosen == tap_stream && chosen->count("--under") == 0) options.under = {"vanilla", "hand-set", "swapd"};
  if (chosen == shape_overhead && chosen->count("--repeat") == 0) options.repeat = 21;
  if (chosen == shape_rivals) {
    if (chosen->count("--rates") == 0) options.rates = {"16MiB"};
    if (chosen->count("--seconds") == 0) options.seconds = 4;
    if (chosen->count("--repeat") == 0) options.repeat = 3;
  }
  if (chosen == scale) scale_defaults(*chosen, options, raw);
  if (chosen == chat) chat_defaults(*chosen, options, raw);
  if (chosen == soak) soak_defaults(*chosen, options, raw);
  if (chosen == apps) apps_defaults(*chosen, options, raw);
  if (chosen == thin_client)
    if (const auto wrong = thin_client_defaults(*chosen, options)) refuse(*wrong);
  if (chosen == response) response_defaults(*chosen, options);
  if (chosen == thrash) thrash_defaults(*chosen, options);
  if (chosen == build) build_defaults(*chosen, options);
  if ((chosen == response || chosen == thrash || chosen == build || chosen == thin_client) &&
      chosen->count("--cpus") == 0)
    options.cpus = cpus_of_this_process();
  if (chosen == latency) latency_defaults(*chosen, options);
  if (chosen == cosched)
    if (const auto wrong = cosched_defaults(*chosen, options)) refuse(*wrong);
  const bool all = std::find(options.mechanisms.begin(), options.mechanisms.end(), "all") != options.mechanisms.end();
  if (all || (options.mechanisms.empty() && (chosen == client_server || of_bpf))) {
    options.mechanisms.clear();
    for (const auto name : mechanism_names()) {
      if (options.observe == "bpf" || !needs_wakes(name)) options.mechanisms.emplace_back(name);
    }
  }
  if (options.mechanisms.empty()) options.mechanisms = {"socket"};
  options.client.rt_priority = static_cast<std::uint8_t>(raw.client_fifo);
  if (raw.client_nice != 0) options.client = SchedAttr{.nice = static_cast<std::int8_t>(raw.client_nice)};
  if (options.swapd.empty()) options.swapd = find_program("swapd", {"../daemon", "../sbin", "."});
  if (options.swapctl.empty()) options.swapctl = find_program("swapctl", {"../src/cli", "."});
  const bool needs_swapd = std::find(options.under.begin(), options.under.end(), "swapd") != options.under.end();
  for (const std::string& program : {options.swapd, options.swapctl}) {
    if (needs_swapd && ::access(program.c_str(), X_OK) != 0)
      refuse(program + ": not there; give --swapd and --swapctl");
  }
  return options;
}

std::string text(const SchedAttr& attr) {
  if (attr.realtime()) return std::string(name(attr.policy)) + ":" + std::to_string(attr.rt_priority);
  return "nice:" + std::to_string(attr.nice);
}

SchedAttr attr_of(const std::string& text) {
  const int number = std::stoi(text.substr(text.find(':') + 1));
  if (text.starts_with("fifo")) {
    return SchedAttr{.policy = SchedPolicy::fifo, .rt_priority = static_cast<std::uint8_t>(number)};
  }
  return SchedAttr{.nice = static_cast<std::int8_t>(number)};
}

RoleOptions parse_role(int argc, char** argv) {
  RoleOptions role;
  CLI::App app("A process of a workload; started by swapbench itself", "swapbench");
  app.add_option("--role", role.role)->required();
  app.add_option("--workload", role.workload)->required();
  app.add_option("--mechanism", role.mechanism);
  app.add_option("--word", role.word);
  app.add_option("--child", role.child_attr);
  app.add_flag("--child-by-hand", role.child_by_hand);
  app.add_option("--index", role.index);
  app.add_option("--control", role.control_fd)->required();
  app.add_option("--gate", role.gate_fd)->required();
  app.add_option("--shared", role.shared_fd)->required();
  app.add_option("--iterations", role.iterations);
  app.add_option("--work-ms", role.work_ms);
  app.add_option("--rate", role.rate);
  app.add_option("--fds", role.fds)->delimiter(',');
  app.add_flag("--split", role.split);
  app.add_option("--block", role.block);
  app.add_option("--bare-call", role.bare_call);
  parse_or_exit(app, argc, argv);
  return role;
}

std::vector<std::string> role_arguments(const RoleOptions& role) {
  const auto number = [](const char* name, auto value) { return std::string(name) + "=" + std::to_string(value); };
  std::vector<std::string> words = {"--role=" + role.role,
                                    "--workload=" + role.workload,
                                    number("--control", role.control_fd),
                                    number("--gate", role.gate_fd),
                                    number("--shared", role.shared_fd),
                                    number("--index", role.index),
                                    number("--iterations", role.iterations),
                                    number("--work-ms", role.work_ms),
                                    number("--rate", role.rate),
                                    number("--block", role.block),
                                    number("--bare-call", role.bare_call)};
  if (!role.mechanism.empty()) words.push_back("--mechanism=" + role.mechanism);
  if (!role.word.empty()) words.push_back("--word=" + role.word);
  if (!role.child_attr.empty()) words.push_back("--child=" + role.child_attr);
  if (role.child_by_hand) words.emplace_back("--child-by-hand");
  if (role.split) words.emplace_back("--split");
  std::string list;
  for (const int fd : role.fds) list += (list.empty() ? "" : ",") + std::to_string(fd);
  if (!list.empty()) words.push_back("--fds=" + list);
  return words;
}

}  // namespace swapd::bench
