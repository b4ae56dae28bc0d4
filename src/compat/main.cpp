// swapd-compat: the D-Bus interfaces of gamemode and of rtkit, served through swapd (swapd-compat(8)).
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>

#include "compat/gamemode.h"
#include "compat/rtkit.h"

namespace swapd::compat {
namespace {

enum Exit : int { good = 0, failed = 1, mistake = 2 };

struct Options {
  bool gamemode = false;
  std::string bus, swapd_bus = "system", class_name;
  std::optional<int> nice;
};

int report(const std::string& what, int r) {
  std::cerr << "swapd-compat: " << what << ": " << std::generic_category().message(-r) << "\n";
  return failed;
}

Result<Bus> open(const std::string& which, sd_event* loop) {
  sd_bus* opened = nullptr;
  int r = which == "system" ? sd_bus_open_system(&opened) : sd_bus_open_user(&opened);
  Bus bus(opened);
  if (r >= 0) r = sd_bus_set_exit_on_disconnect(opened, 1);
  if (r >= 0) r = sd_bus_attach_event(opened, loop, SD_EVENT_PRIORITY_NORMAL);
  if (r < 0) return Error(-r, which);
  return bus;
}

int serve(const Options& options) {
  sd_event* made = nullptr;
  if (const int r = sd_event_default(&made); r < 0) return report("event loop", r);
  const Loop loop(made);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
  (void)pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  for (const int signal : {SIGTERM, SIGINT}) (void)sd_event_add_signal(made, nullptr, signal, nullptr, nullptr);
  const auto bus = open(options.bus, made);
  if (!bus) return report("the " + options.bus + " bus cannot be reached (--bus)", -bus.error().code());
  // swapd can be on another one: then it is asked there.
  const bool apart = options.swapd_bus != options.bus;
  const auto other = apart ? open(options.swapd_bus, made) : Result<Bus>(Bus());
  if (!other) return report("the " + options.swapd_bus + " bus cannot be reached (--swapd-bus)", -other.error().code());
  SwapdClient swapd(apart ? other->get() : bus->get());
  GameMode games(made, bus->get(), swapd, {options.class_name, options.nice});
  RealtimeKit threads(made, bus->get(), swapd, options.class_name);
  const Status serving = options.gamemode ? games.serve() : threads.serve();
  if (!serving) {
    const std::string name = serving.error().context();
    if (serving.error().code() == EEXIST)
      std::cerr << "swapd-compat: another program has the name " << name << ": stop it, or leave it to that one\n";
    else
      (void)report(name, -serving.error().code());
    return failed;
  }
  spdlog::info("serving {}", options.gamemode ? "com.feralinteractive.GameMode" : "org.freedesktop.RealtimeKit1");
  const int r = sd_event_loop(made);
  return r < 0 ? report("event loop", r) : r;
}

int main_with(int argc, char** argv) {
  CLI::App app("The D-Bus interfaces of gamemode and of rtkit, served through swapd", "swapd-compat");
  app.set_version_flag("--version", "swapd-compat " SWAPD_VERSION);
  app.require_subcommand(1);
  Options options;
  const std::vector<std::string> buses = {"system", "session"};
  const auto common = [&](CLI::App& part) {
    part.add_option("--class", options.class_name, "The class of swapd's that programs come into")->type_name("NAME");
    part.add_option("--swapd-bus", options.swapd_bus, "The bus that swapd is on: system or session")
        ->check(CLI::IsMember(buses));
  };
  CLI::App* gamemode = app.add_subcommand("gamemode", "Games that register are managed by swapd until they end");
  gamemode->add_option("--nice", options.nice, "Their nice value meanwhile, where polkit allows it")
      ->check(CLI::Range(-20, 19));
  gamemode->add_option("--bus", options.bus, "The bus to serve on: session (default) or system")
      ->check(CLI::IsMember(buses));
  common(*gamemode);
  CLI::App* rtkit = app.add_subcommand("rtkit", "Threads of sound and video have the priority that they ask for");
  rtkit->add_option("--bus", options.bus, "The bus to serve on: system (default) or session")
      ->check(CLI::IsMember(buses));
  common(*rtkit);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    if (wrong.get_exit_code() == 0) return app.exit(wrong);
    std::cerr << "swapd-compat: " << wrong.what() << "; see --help\n";
    return mistake;
  }
  options.gamemode = gamemode->parsed();
  if (options.bus.empty()) options.bus = options.gamemode ? "session" : "system";
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
  spdlog::set_pattern("swapd-compat: %l: %v");
  return serve(options);
}

}  // namespace
}  // namespace swapd::compat

int main(int argc, char** argv) { return swapd::compat::main_with(argc, argv); }
