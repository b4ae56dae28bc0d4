// client-server [SWAP04 §5.1]: in each iteration the client waits for the server's computation and gets a 4 KiB answer
// by the mechanism. The client alone is important.
#include <sys/prctl.h>

#include <algorithm>

#include "harness/workload.h"

namespace swapd::bench {

Result<Measured> client_server_once(const Context& context, const Setup& setup) {
  auto made = Team::make(context, setup);
  if (!made) return made.error();
  Team& team = **made;
  const auto mechanism = make_mechanism(setup.mechanism);
  Place place;
  place.dir = team.dir();
  place.shared = &team.shared();
  if (const auto created = mechanism->create(place); !created) return created.error();

  const auto spec = [&](const char* role, const End& end) {
    RoleSpec one;
    one.role.role = role;
    one.role.mechanism = setup.mechanism;
    one.role.word = end.word;
    for (const Fd& fd : end.fds) one.role.fds.push_back(fd.get());
    return one;
  };
  RoleSpec client = spec("client", place.client);
  client.important = true;
  if (const auto added = team.add(client); !added) return added.error();
  if (mechanism->has_server()) {
    if (const auto added = team.add(spec("server", place.server)); !added) return added.error();
  }
  // Under vanilla they are there as well.
  for (int i = 0; i < context.options.wrong_providers; ++i)
    if (const auto added = team.add(spec("wrong", {})); !added) return added.error();
  place.client.fds.clear();
  place.server.fds.clear();
  if (const auto begun = team.begin(); !begun) return begun.error();
  return team.finish();
}

Result<std::vector<nlohmann::json>> run_client_server(const Context& context) {
  const Options& options = context.options;
  std::vector<Case> cases;
  for (const std::string& mechanism : options.mechanisms) {
    Setup setup{.mechanism = mechanism, .iterations = options.iterations, .work_ms = options.work_ms};
    if (options.server_nice != 0) setup.extra["server_nice"] = options.server_nice;
    if (options.wrong_providers != 0) setup.extra["wrong_providers"] = options.wrong_providers;
    for (Setup& one : spread(setup, options)) {
      cases.push_back({std::move(one), [&context](const Setup& s) { return client_server_once(context, s); }});
    }
  }
  const auto rows = measure(cases, options.repeat, options.progress);
  if (!rows) return rows.error();
  return lines(*rows, options);
}

Status client_server_role(Role& role) {
  if (role.is("wrong")) {
    ::prctl(PR_SET_NAME, wrong_provider_name);
    if (const auto go = role.wait_for_go(); !go) return go;
    for (;;) role.work().run_ms(10);  // until the harness ends it
  }
  const auto mechanism = make_mechanism(role.options().mechanism);
  if (!mechanism) return Error(EINVAL, "unknown mechanism");
  const Computation compute = [&] { role.work().run_ms(role.options().work_ms); };
  if (role.is("client")) {
    if (const auto attached = mechanism->attach_client(role.peer()); !attached) return attached;
    if (const auto go = role.wait_for_go(); !go) return go;
    return role.iterate(
        [&]() -> Status {
          if (const auto asked = mechanism->request(compute); !asked) return asked;
          return mechanism->await();
        },
        mechanism->warm_ups());
  }
  if (const auto attached = mechanism->attach_server(role.peer()); !attached) return attached;
  if (const auto go = role.wait_for_go(); !go) return go;
  for (;;) {  // until the harness ends it
    if (const auto served = mechanism->serve(compute); !served) return served;
  }
}

}  // namespace swapd::bench
