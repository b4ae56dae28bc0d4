// pipeline: a producer makes 8 KiB chunks, each of so many microseconds of CPU, and writes them into a pipe that an
// important process reads. The waits are short and many: what a donation costs each time shows here.
#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "harness/workload.h"

namespace swapd::bench {

namespace {

constexpr std::size_t chunk_size = 8192;

Result<Measured> one_pipeline(const Context& context, const Setup& setup) {
  auto made = Team::make(context, setup);
  if (!made) return made.error();
  Team& team = **made;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe");
  Fd read_end(ends[0]), write_end(ends[1]);
  RoleSpec client, server;
  client.role.role = "client";
  client.role.fds = {read_end.get()};
  client.important = true;
  server.role.role = "server";
  server.role.fds = {write_end.get()};
  if (const auto added = team.add(client); !added) return added.error();
  if (const auto added = team.add(server); !added) return added.error();
  read_end.reset();
  write_end.reset();
  if (const auto begun = team.begin(); !begun) return begun.error();
  return team.finish();
}

}  // namespace

Result<std::vector<nlohmann::json>> run_pipeline(const Context& context) {
  const Options& options = context.options;
  std::vector<Case> cases;
  for (const double chunk_us : options.chunk_us) {
    Setup setup{.mechanism = "pipe", .iterations = options.iterations, .work_ms = chunk_us / 1000};
    setup.extra["chunk_us"] = chunk_us;
    for (Setup& one : spread(setup, options)) {
      cases.push_back({std::move(one), [&context](const Setup& s) { return one_pipeline(context, s); }});
    }
  }
  const auto rows = measure(cases, options.repeat, options.progress);
  if (!rows) return rows.error();
  return lines(*rows, options);
}

Status pipeline_role(Role& role) {
  static std::array<char, chunk_size> chunk{};
  const int fd = role.options().fds.at(0);
  if (const auto go = role.wait_for_go(); !go) return go;
  if (role.is("client")) {
    return role.iterate(
        [&]() -> Status {
          for (std::size_t got = 0; got < chunk_size;) {
            const ssize_t size = ::read(fd, chunk.data(), chunk_size - got);
            if (size <= 0) return errno_error("read");
            got += static_cast<std::size_t>(size);
          }
          return Done{};
        },
        0);
  }
  for (;;) {
    role.work().run_ms(role.options().work_ms);
    if (::write(fd, chunk.data(), chunk_size) != static_cast<ssize_t>(chunk_size)) return errno_error("write");
  }
}

}  // namespace swapd::bench
