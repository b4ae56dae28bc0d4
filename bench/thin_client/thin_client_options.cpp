#include "thin_client/thin_client_options.h"

#include "shipped_policies.h"  // made of policies/
#include "thin_client/session.h"

namespace swapd::bench {

void thin_client_options(CLI::App& app, Options& options) {
  app.remove_option(app.get_option("--sessions"));
  app.add_option("--sessions", options.thin.sessions,
                 "Sessions besides the important one, each of which plays the film; a list measures each")
      ->delimiter(',')
      ->check(CLI::Range(0, 200));
  app.add_option("--player", options.thin.players,
                 "What is important: a video player (frames a second) or a browser (seconds a page); a list")
      ->delimiter(',')
      ->check(CLI::IsMember({"vnc-video", "vnc-browser"}));
  app.add_option("--seconds", options.seconds, "How long each measurement takes")->check(CLI::Range(0.1, 600.0));
}

std::optional<std::string> thin_client_defaults(const CLI::App& chosen, Options& options) {
  if (chosen.count("--under") == 0) options.under = {"vanilla", "hand-set", "swapd"};
  if (chosen.count("--hogs") != 0 || options.baseline) return "thin-client: the sessions are the load; see --sessions";
  options.hogs = {0};
  options.policy = thin_client_policy;
  return missing_thin_client_program(options.thin.players);
}

}  // namespace swapd::bench
