// scale: many managed threads that sleep, on many resources, and a few pairs that wake each other at a given rate.
//
// The sleepers wait in poll(2) for eventfds of their own, in as many processes as the limit on descriptors asks for.
// They are important, all or a part of them, so that swapd has to know what they wait for. When swapd has come to rest,
// pairs of threads of two processes begin to write to each other through pipes; one side of each is important. What
// they really did the kernel has counted: each voluntary switch of theirs is a wait, and a wake ended it.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "harness/usage.h"
#include "harness/workload.h"

namespace swapd::bench {

namespace {

constexpr int max_threads_a_process = 1250;
constexpr int descriptors_kept = 256;  // for all else that a process has open
constexpr const char* engine_thread = "swapd-engine";

struct Shape {
  int processes = 0, threads_each = 0, resources_each = 0;  // eventfds a thread
  [[nodiscard]] int threads() const { return processes * threads_each; }
  [[nodiscard]] int resources() const { return threads() * resources_each; }
};

// As near to what is asked for as the limit on descriptors allows.
Shape shape_of(const Options& options) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const int descriptors = static_cast<int>(std::min<rlim_t>(files.rlim_max, 1'000'000)) - descriptors_kept;
  Shape shape;
  shape.resources_each = std::max(1, options.scale.resources / options.scale.threads);
  shape.threads_each = std::clamp(descriptors / shape.resources_each, 1, max_threads_a_process);
  shape.processes = (options.scale.threads + shape.threads_each - 1) / shape.threads_each;
  shape.threads_each = (options.scale.threads + shape.processes - 1) / shape.processes;
  return shape;
}

struct Snapshot {
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
  std::uint64_t switches = 0;
  double load_s = 0, swapd_s = 0, engine_s = 0;
};

Snapshot look(const Team& team) {
  Snapshot now;
  for (const std::size_t side : {0, 1}) {
    now.switches += voluntary_switches(team.pid_of(side));
    now.load_s += process_cpu_s(team.pid_of(side));
  }
  if (team.daemon() == nullptr) return now;
  now.swapd_s = process_cpu_s(team.daemon()->pid());
  now.engine_s = thread_cpu_s(team.daemon()->pid(), engine_thread);
  return now;
}

double seconds_between(const Snapshot& a, const Snapshot& b) {
  return std::chrono::duration<double>(b.time - a.time).count();
}

// Whoever of the team fails meanwhile is an error.
Status pass(Team& team, double seconds) {
  const auto line = team.line_of(0, std::chrono::milliseconds(std::llround(seconds * 1000)));
  if (!line && line.error().code() == ETIMEDOUT) return Done{};
  return line ? Status(Error(EPROTO, "unasked: " + *line)) : Status(line.error());
}

// Until swapd uses less than a tenth of a CPU for a second: the answer is how long that took.
Result<double> settle(Team& team, double at_most) {
  const Snapshot begun = look(team);
  for (int quiet = 0; quiet < 2;) {
    const Snapshot before = look(team);
    if (const auto passed = pass(team, 0.5); !passed) return passed.error();
    const Snapshot after = look(team);
    quiet = (after.swapd_s - before.swapd_s) / seconds_between(before, after) < 0.1 ? quiet + 1 : 0;
    if (seconds_between(begun, after) > at_most) break;
  }
  return seconds_between(begun, look(team));
}

Status add_pairs(Team& team, const Options::Scale& scale) {
  RoleSpec ping, pong;
  ping.role.role = "ping";
  ping.important = true;
  pong.role.role = "pong";
  ping.role.word = pong.role.word = std::to_string(scale.rate);
  std::vector<Fd> ends;
  for (int i = 0; i < scale.pairs; ++i) {
    int there[2], back[2];
    if (::pipe2(there, O_CLOEXEC) != 0) return errno_error("pipe");
    ends.emplace_back(there[0]);
    ends.emplace_back(there[1]);
    if (::pipe2(back, O_CLOEXEC) != 0) return errno_error("pipe");
    ends.emplace_back(back[0]);
    ends.emplace_back(back[1]);
    ping.role.fds.insert(ping.role.fds.end(), {back[0], there[1]});
    pong.role.fds.insert(pong.role.fds.end(), {there[0], back[1]});
  }
  if (Status added = team.add(ping); !added) return added;
  return team.add(pong);
}

Result<Measured> one_scale(const Context& context, const Setup& setup) {
  const Options& options = context.options;
  const Shape shape = shape_of(options);
  auto made = Team::make(context, setup);
  if (!made) return made.error();
  Team& team = **made;
  if (const auto added = add_pairs(team, options.scale); !added) return added.error();
  const int important = (shape.processes * options.scale.important + 99) / 100;
  for (int i = 0; i < shape.processes; ++i) {
    RoleSpec sleepers;
    sleepers.role.role = "sleepers";
    sleepers.role.index = i;
    sleepers.role.word = std::to_string(shape.threads_each) + " " + std::to_string(shape.resources_each);
    sleepers.important = i < important;
    if (const auto added = team.add(sleepers); !added) return added.error();
  }
  if (const auto begun = team.begin(); !begun) return begun.error();
  const auto settled = settle(team, options.scale.settle_s);
  if (!settled) return settled.error();
  team.shared().asked = 1;
  if (const auto passed = pass(team, 0.5); !passed) return passed.error();

  const Snapshot before = look(team);
  if (const auto passed = pass(team, options.seconds); !passed) return passed.error();
  const Snapshot after = look(team);
  const double took = seconds_between(before, after);
  const auto switches = static_cast<double>(after.switches - before.switches);
  nlohmann::json extra = {{"threads", shape.threads()},
                          {"processes", shape.processes},
                          {"resources_made", shape.resources()},
                          {"important_threads", important * shape.threads_each},
                          {"pairs", options.scale.pairs},
                          {"seconds", rounded(took)},
                          {"events_per_s", std::round(2 * switches / took)},
                          {"load_cpu_share", rounded((after.load_s - before.load_s) / took)}};
  if (const Daemon* daemon = team.daemon(); daemon != nullptr) {
    extra.update({{"settle_s", rounded(*settled)},
                  {"swapd_cpu_share", rounded((after.swapd_s - before.swapd_s) / took)},
                  {"engine_cpu_share", rounded((after.engine_s - before.engine_s) / took)},
                  {"rss_bytes", rss_bytes(daemon->pid())}});
    const auto status = daemon->ask({"status"});
    if (!status) return status.error();
    for (const char* field : {"managed_threads", "watched_threads", "resources", "requesters", "providers",
                              "engine_cpu_s", "worker_cpu_s", "receivers_cpu_s"}) {
      if (status->contains(field)) extra[field] = (*status)[field];
    }
  }
  auto measured = team.finish_after_done();
  if (measured) measured->extra.update(extra);
  return measured;
}

void sleep_for_ever(std::vector<pollfd> waits) {
  while (::poll(waits.data(), waits.size(), -1) <= 0) {
  }
}

// With small stacks, which std::thread cannot have.
Status start_sleeper(std::vector<pollfd> waits) {
  pthread_attr_t attr;
  ::pthread_attr_init(&attr);
  ::pthread_attr_setstacksize(&attr, std::size_t{64} << 10);
  ::pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  auto* given = new std::vector<pollfd>(std::move(waits));
  pthread_t thread{};
  const int error = ::pthread_create(
      &thread, &attr,
      [](void* argument) -> void* {
        const std::unique_ptr<std::vector<pollfd>> own(static_cast<std::vector<pollfd>*>(argument));
        sleep_for_ever(*own);
        return nullptr;
      },
      given);
  ::pthread_attr_destroy(&attr);
  if (error == 0) return Done{};
  delete given;
  return Error(error, "pthread_create");
}

Status sleepers(Role& role) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const std::string& word = role.options().word;
  const int threads = std::stoi(word), resources = std::stoi(word.substr(word.find(' ')));
  for (int i = 0; i < threads; ++i) {
    std::vector<pollfd> waits;
    for (int j = 0; j < resources; ++j) {
      const int fd = ::eventfd(0, EFD_CLOEXEC);
      if (fd < 0) return errno_error("eventfd " + std::to_string(i * resources + j));
      waits.push_back({fd, POLLIN, 0});
    }
    if (i + 1 == threads) {  // this thread is one of them
      if (Status go = role.wait_for_go(); !go) return go;
      sleep_for_ever(std::move(waits));
    } else if (const auto started = start_sleeper(std::move(waits)); !started) {
      return Error(started.error()).in("sleeper " + std::to_string(i));
    }
  }
  return Done{};
}

// Round trips, so many each millisecond; what a late turn has missed is not made up for.
void ping(Role& role, std::size_t pair, double per_ms) {
  const int in = role.options().fds.at(2 * pair), out = role.options().fds.at(2 * pair + 1);
  timespec next{};
  ::clock_gettime(CLOCK_MONOTONIC, &next);
  double due = 0;
  for (std::uint32_t noted = 0;;) {
    due = per_ms > 0 ? std::min(due + per_ms, 2 * per_ms + 1) : 100;
    const auto before = std::chrono::steady_clock::now();
    int done = 0;
    for (; due >= 1; due -= 1, ++done) {
      char byte = 'x';
      if (::write(out, &byte, 1) != 1 || ::read(in, &byte, 1) != 1) return;
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - before;
    if (pair == 0 && done > 0 && noted < max_samples) {
      role.note_sample(noted, took.count() / done);
      role.shared().samples = ++noted;
    }
    if (per_ms <= 0) continue;
    next.tv_nsec += 1'000'000;
    if (next.tv_nsec >= 1'000'000'000) {
      next.tv_nsec -= 1'000'000'000;
      ++next.tv_sec;
    }
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
  }
}

void pong(const Role& role, std::size_t pair) {
  const int in = role.options().fds.at(2 * pair), out = role.options().fds.at(2 * pair + 1);
  for (char byte = 0; ::read(in, &byte, 1) == 1 && ::write(out, &byte, 1) == 1;) {
  }
}

}  // namespace

Result<std::vector<nlohmann::json>> run_scale(const Context& context) {
  const Options& options = context.options;
  Setup setup{.mechanism = "pipe", .iterations = options.iterations};
  setup.extra["rate"] = options.scale.rate;
  std::vector<Case> cases;
  for (Setup& one : spread(setup, options)) {
    cases.push_back({std::move(one), [&context](const Setup& s) { return one_scale(context, s); }});
  }
  const auto rows = measure(cases, options.repeat, options.progress);
  if (!rows) return rows.error();
  return lines(*rows, options);
}

Status scale_role(Role& role) {
  if (role.is("sleepers")) return sleepers(role);
  if (Status go = role.wait_for_go(); !go) return go;
  while (role.shared().asked == 0) ::usleep(1000);
  const std::size_t pairs = role.options().fds.size() / 2;
  // A round trip is two waits and two wakes.
  const double per_ms = std::stod(role.options().word) / 4e3 / static_cast<double>(pairs);
  std::vector<std::jthread> threads;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    threads.emplace_back([&role, pair, per_ms] {
      if (role.is("ping")) {
        ping(role, pair, per_ms);
      } else {
        pong(role, pair);
      }
    });
  }
  threads.clear();  // until the harness ends it
  return Error(EPIPE, "the other side is gone");
}

}  // namespace swapd::bench
