// cascade: the client asks process 1, each asks the next, the last computes: the dependency is as deep as the chain
// ([SWAP04 §4], indirect confidence).
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "harness/why.h"
#include "harness/workload.h"

namespace swapd::bench {

namespace {

Result<Measured> one_cascade(const Context& context, const Setup& setup) {
  const int depth = context.options.depth;
  auto made = Team::make(context, setup);
  if (!made) return made.error();
  Team& team = **made;
  Fd up;  // where the process to be started next is asked
  for (int i = 0; i <= depth; ++i) {
    RoleSpec spec;
    spec.role.role = i == 0 ? "client" : i < depth ? "link" : "last";
    spec.role.index = i;
    spec.important = i == 0;
    Fd down, next_up;
    if (i < depth) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno_error("socketpair");
      down = Fd(ends[0]);
      next_up = Fd(ends[1]);
    }
    if (up) spec.role.fds.push_back(up.get());
    if (down) spec.role.fds.push_back(down.get());
    if (const auto added = team.add(spec); !added) return added.error();
    up = std::move(next_up);
  }
  if (const auto begun = team.begin(); !begun) return begun.error();
  nlohmann::json extra = nlohmann::json::object();
  if (context.options.show_why && team.daemon() != nullptr) {
    if (const auto waited = wait_for_iteration(team, static_cast<std::uint32_t>(setup.iterations / 3 + 1)); !waited) {
      return waited.error();
    }
    std::set<pid_t> chain;
    for (int i = 1; i <= depth; ++i) chain.insert(team.pid_of(static_cast<std::size_t>(i)));
    const auto why = ask_why(*team.daemon(), team.pid_of(0), chain);
    if (!why) return why.error();
    extra = {{"chain_shown", why->named}, {"why", why->json}};
  }
  auto measured = team.finish();
  if (measured) measured->extra.update(extra);
  return measured;
}

Status exchange(int fd) {
  char word = '?';
  if (::write(fd, &word, 1) != 1) return errno_error("write");
  if (::read(fd, &word, 1) != 1) return errno_error("read");
  return Done{};
}

}  // namespace

Result<std::vector<nlohmann::json>> run_cascade(const Context& context) {
  const Options& options = context.options;
  Setup setup{.mechanism = "socket", .iterations = options.iterations, .work_ms = options.work_ms};
  setup.extra["depth"] = options.depth;
  std::vector<Case> cases;
  for (Setup& one : spread(setup, options)) {
    cases.push_back({std::move(one), [&context](const Setup& s) { return one_cascade(context, s); }});
  }
  const auto rows = measure(cases, options.repeat, options.progress);
  if (!rows) return rows.error();
  return lines(*rows, options);
}

Status cascade_role(Role& role) {
  const auto& fds = role.options().fds;
  if (const auto go = role.wait_for_go(); !go) return go;
  if (role.is("client")) return role.iterate([&] { return exchange(fds.at(0)); }, 1);
  for (;;) {
    char word = 0;
    if (::read(fds.at(0), &word, 1) != 1) return errno_error("read");
    if (role.is("last")) {
      role.work().run_ms(role.options().work_ms);
    } else if (const auto asked = exchange(fds.at(1)); !asked) {
      return asked;
    }
    if (::write(fds.at(0), &word, 1) != 1) return errno_error("write");
  }
}

}  // namespace swapd::bench
