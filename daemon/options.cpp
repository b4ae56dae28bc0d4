#include "options.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace swapd::daemon {

std::optional<Options> parse_options(int argc, char** argv, int& exit_status) {
  Options o;
  CLI::App app{"swapd lends the priority of an important program that waits to the one it waits for."};
  app.footer(
      "Examples:\n"
      "  swapd --foreground --bus none --socket /tmp/s --state-dir /tmp/d\n"
      "  swapctl --socket /tmp/s run --fifo 50 -- psql mydb\n"
      "See swapd(8) and swapctl(1).");
  app.set_version_flag("--version", "swapd " SWAPD_VERSION);
  app.add_flag("--foreground", o.foreground, "stay in the foreground; ^C ends it and gives everything back");
  app.add_flag("--respawn", o.respawn, "start swapd again where it is killed (without --foreground that is so anyway)");
  app.add_option("--socket", o.socket, "where swapctl finds it")->capture_default_str();
  app.add_option("--bus", o.bus, "message bus to serve besides the socket: system, session or none")
      ->capture_default_str()
      ->check(CLI::IsMember({"system", "session", "none"}));
  app.add_option("--state-dir", o.state_dir, "where the journal is kept")->capture_default_str();
  app.add_option("--config", o.config,
                 "policy file (default: what there is in /usr/lib/swapd/policies.d, /usr/local/lib/swapd/policies.d, "
                 "/etc/swapd/policies.d and /etc/swapd/swapd.toml)");
  app.add_option("--observe", o.observe, "auto, bpf or seccomp")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "bpf", "seccomp"}));
  app.add_option("--btf", o.btf, "the kernel's types")->group("");
  app.add_option("--refuse", o.refuse, "kernel programs that shall not load")->delimiter(',')->group("");
  app.add_option("--metrics", o.metrics, "write status there as Prometheus text every 15 s (node exporter: NAME.prom)")
      ->type_name("FILE");
  app.add_option("--guard-socket", o.guard_socket,
                 "have swapd-guard started by who listens there (swapd-guard.socket), not as a child")
      ->type_name("PATH");
  app.add_option("--attach-socket", o.attach_socket,
                 "have swapd-attach started by who listens there (swapd-attach.socket), not as a child")
      ->type_name("PATH");
  app.add_option("--oci-socket", o.oci_socket,
                 "manage containers whose seccomp profile has this as its listenerPath, from their first instruction")
      ->type_name("PATH");
  Options::OciProfile profile;
  const CLI::Option* oci_profile =
      app.add_option("--oci-profile", profile.base,
                     "print a seccomp profile for such containers, and exit; no root needed (default: all calls are "
                     "allowed; BASE: a profile to begin with)")
          ->type_name("BASE")
          ->expected(0, 1);
  app.add_option("--oci-class", profile.class_name, "the class that the containers come into")->needs("--oci-profile");
  app.add_flag("--oci-limits", profile.limits, "with calls for the class's limits; each costs more then")
      ->needs("--oci-profile");
  app.add_option("--oci-runtime", profile.runtime, "crun or runc (whose containers' write(2) cannot be trapped)")
      ->needs("--oci-profile")
      ->capture_default_str()
      ->check(CLI::IsMember({"crun", "runc"}));
  app.add_flag("--dry-run", o.dry_run, "decide and report, but change no priority");
  app.add_flag("--restore", o.restore, "give back what a swapd that was killed had lent (--state-dir), and exit");
  std::string checked;
  const CLI::Option* check =
      app.add_option("--check-config", checked, "check a policy file, or without one the default ones, and exit")
          ->expected(0, 1);
  CLI::Option* replay = app.add_option(
      "--replay", o.replay, "decide again what swapctl record has written, print it, and compare; no root needed");
  app.add_flag("--json", o.json, "print the replay as JSON, one object a line")->needs(replay);
  app.add_option(
         "--simulate", o.simulate,
         "simulate coscheduling on the nodes that a scenario describes, print JSON, one object a line; no root needed")
      ->type_name("FILE");
  app.add_option("--log-level", o.log_level, "debug, info, warn or error")
      ->capture_default_str()
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  app.add_option("--inject-wrong-provider", o.wrong_provider, "name processes of this name as providers")->group("");
  app.add_option("--exit-with-pid", o.exit_with_pid, "end when this process does (swapctl run --embedded)")->group("");
  app.add_option("--ready-fd", o.ready_fd, "write a byte here once the socket answers")->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    exit_status = app.exit(done);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    std::cerr << "swapd: " << error.what() << "; see swapd --help\n";
    exit_status = 2;
    return std::nullopt;
  }
  if (!o.guard_socket.empty() && (o.respawn || !o.foreground)) {
    std::cerr << "swapd: --guard-socket goes with --foreground and without --respawn: a guard that is somebody else's "
                 "child starts no swapd\n";
    exit_status = 2;
    return std::nullopt;
  }
  if (check->count() > 0) o.check_config = checked;
  if (oci_profile->count() > 0) o.oci_profile = profile;
  return o;
}

}  // namespace swapd::daemon
