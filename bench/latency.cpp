// latency: from the moment the requester blocks to the moment the provider has new attributes, both as the kernel's
// tracepoints tell them: sched_switch of the requester, and sched_setattr by any process. swapd is not asked. Beside it
// the part of that time in which the provider had no CPU: with one it needs nothing, and nothing is lent.
//
// The provider always runs or wants to: it uses CPU time until what was lent to it last is gone, offers the next round,
// and waits for the requester without sleeping. So each round needs a new donation, and no wake-up tells who provides.
// As soon as it finds other attributes than its own it answers; without a donation it answers when its work is done.
// The requester sleeps between the rounds and waits for nothing but the answer.
#include "latency.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmath>

#include "harness/workload.h"
#include "sys/sched/scheduler.h"

namespace swapd::bench {

namespace {

constexpr std::uint32_t warm_up = 5;  // rounds before the first that counts
constexpr double alone_ms = 3;        // CPU time without a donation before each round; a donation lingers for 2
constexpr const char* sleeping = "prev_state != 0 && prev_state != 256";  // neither yielded nor preempted

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Watch {
  KernelEvents blocks, entered, left, took, lost_cpu;

  static Result<Watch> open(pid_t requester, pid_t provider) {
    auto blocks = KernelEvents::open("sched/sched_switch", "prev_pid", sleeping, requester);
    if (!blocks) return blocks.error();
    auto entered = KernelEvents::open("syscalls/sys_enter_sched_setattr", "pid", "pid == " + std::to_string(provider));
    if (!entered) return entered.error();
    auto left = KernelEvents::open("syscalls/sys_exit_sched_setattr", "ret", "");
    if (!left) return left.error();
    auto took = KernelEvents::open("sched/sched_switch", "next_pid", "next_pid == " + std::to_string(provider));
    if (!took) return took.error();
    auto lost = KernelEvents::open("sched/sched_switch", "prev_pid", "prev_pid == " + std::to_string(provider));
    if (!lost) return lost.error();
    return Watch{std::move(*blocks), std::move(*entered), std::move(*left), std::move(*took), std::move(*lost)};
  }
  void read(Seen& seen) {
    blocks.read(seen.blocks);
    entered.read(seen.entered);
    left.read(seen.left);
    took.read(seen.took);
    lost_cpu.read(seen.lost);
  }
  [[nodiscard]] std::uint64_t lost() const {
    return blocks.lost() + entered.lost() + left.lost() + took.lost() + lost_cpu.lost();
  }
};

Result<Measured> one_latency(const Context& context, const Setup& setup) {
  auto made = Team::make(context, setup);
  if (!made) return made.error();
  Team& team = **made;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno_error("socketpair");
  Fd first(ends[0]), second(ends[1]);
  RoleSpec client, server;
  client.role.role = "client";
  client.important = true;
  client.role.fds = {first.get()};
  server.role.role = "server";
  server.role.fds = {second.get()};
  for (RoleSpec* spec : {&client, &server}) {
    spec->role.word = setup.extra["resource"];
    if (const auto added = team.add(*spec); !added) return added.error();
  }
  first.reset();
  second.reset();
  team.shared().provider_own = team.own_attr(server);
  auto watch = Watch::open(team.pid_of(0), team.pid_of(1));
  if (!watch) return watch.error();
  if (const auto begun = team.begin(); !begun) return begun.error();

  Seen seen;
  const auto until = std::chrono::steady_clock::now() + team.limit();
  for (;;) {  // the rings are read while it goes on, lest they run over
    watch->read(seen);
    const auto done = team.line_of(0, std::chrono::milliseconds(20));
    if (done) break;
    if (done.error().code() != ETIMEDOUT || std::chrono::steady_clock::now() > until) return done.error();
  }
  watch->read(seen);
  auto measured = team.finish_after_done();
  if (!measured) return measured;
  const auto& windows = team.shared().windows;
  const std::vector<WaitWindow> waits(windows.begin(), windows.begin() + setup.iterations);
  const Latencies result = latencies(waits, std::move(seen));
  const Summary summary = summarize(result.ms), without = summarize(result.without_cpu_ms);
  const auto us = [](double ms) { return std::round(ms * 10'000) / 10; };
  measured->samples_ms = result.ms;
  measured->extra.update({{"p50_us", us(summary.p50)},
                          {"p99_us", us(summary.p99)},
                          {"max_us", us(summary.max)},
                          {"without_cpu_p50_us", us(without.p50)},
                          {"without_cpu_p99_us", us(without.p99)},
                          {"without_cpu_max_us", us(without.max)},
                          {"samples", result.ms.size()},
                          {"missed", result.missed},
                          {"found_lent", team.shared().lent.load()},
                          {"records_lost", watch->lost()}});
  return measured;
}

// The read end of the round's pipe. It came before the round was offered.
Status take_pipe(const Role& role, Fd& pipe) {
  Fd fresh = receive_fd(role.options().fds.at(0), MSG_DONTWAIT);
  if (!fresh) return errno_error("taking a pipe");
  pipe = std::move(fresh);
  return Done{};
}

Status requester(Role& role) {
  Shared& shared = role.shared();
  const auto rounds = warm_up + static_cast<std::uint32_t>(role.options().iterations);
  Fd pipe;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    while (shared.offered < round) ::usleep(500);
    if (round == 1 || role.options().word == "unknown") {
      if (Status taken = take_pipe(role, pipe); !taken) return taken;
    }
    shared.asked = round;
    WaitWindow window{.begun_ns = now_ns()};
    char byte = 0;
    if (::read(pipe.get(), &byte, 1) != 1) return errno_error("read");
    window.ended_ns = now_ns();
    if (round > warm_up) shared.windows[round - warm_up - 1] = window;
  }
  return role.finish(0);
}

Status provider(Role& role) {
  Shared& shared = role.shared();
  const sys::LinuxScheduler scheduler;
  // Not what it has now: the requester may have waited for it at the start already.
  const SchedAttr own = shared.provider_own;
  const auto lent = [&] {
    const auto now = scheduler.get(0);
    return now && (now->policy != own.policy || now->nice != own.nice);
  };
  Fd pipe;
  for (std::uint32_t round = 1;; ++round) {  // until the harness ends it
    do {
      role.work().run_ms(alone_ms);
    } while (lent());
    if (round == 1 || role.options().word == "unknown") {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe");
      pipe.reset(ends[1]);
      const Fd for_requester(ends[0]);
      if (Status sent = send_fd(role.options().fds.at(0), for_requester.get()); !sent) return sent;
    }
    shared.offered = round;
    while (shared.asked < round) role.work().run_ms(0.02);
    const bool alone = role.work().run_ms_while(role.options().work_ms, [&] { return !lent(); });
    if (!alone && round > warm_up) ++shared.lent;
    if (::write(pipe.get(), "x", 1) != 1) return errno_error("write");
  }
}

}  // namespace

Result<std::vector<nlohmann::json>> run_latency(const Context& context) {
  const Options& options = context.options;
  std::vector<Case> cases;
  for (const std::string& resource : options.resources) {
    Setup setup{.mechanism = "pipe", .iterations = options.iterations, .work_ms = options.work_ms};
    setup.demand_ms = options.work_ms + 2 * alone_ms;
    setup.extra["resource"] = resource;
    for (Setup& one : spread(setup, options)) {
      cases.push_back({std::move(one), [&context](const Setup& s) { return one_latency(context, s); }});
    }
  }
  const auto rows = measure(cases, options.repeat, options.progress);
  if (!rows) return rows.error();
  return lines(*rows, options);
}

Status latency_role(Role& role) {
  if (Status go = role.wait_for_go(); !go) return go;
  return role.is("client") ? requester(role) : provider(role);
}

}  // namespace swapd::bench
