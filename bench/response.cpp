// response: how long a program in a terminal takes to answer a key, beside busy loops: what a person feels
// [Peachey84 §5.2]. The harness is the person: it waits, presses a key, and reads what comes back.
//
// Under swapd policies/desktop.toml holds, program and loops are of its class of applications, and nothing else says
// that the one matters more than the others.
#include "response.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <cmath>
#include <thread>

#include "harness/rates.h"
#include "harness/workload.h"
#include "memory/memory_load.h"
#include "memory/thrash.h"
#include "shipped_policies.h"

namespace swapd::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds longest{20'000};  // that the person waits for an answer
constexpr int keys_a_line = 20;          // then a shell's line is emptied
constexpr char empty_line = 0x15;        // ^U

// The person's side of a terminal.
class Terminal {
 public:
  // echoes: as a terminal does before a program has changed it. A shell's line editor does not echo where it finds it
  // otherwise.
  static Result<Terminal> open(bool echoes) {
    Terminal made;
    made.master_.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!made.master_ || ::grantpt(made.master_.get()) != 0 || ::unlockpt(made.master_.get()) != 0)
      return errno_error("opening a pseudo-terminal");
    char name[64];
    if (::ptsname_r(made.master_.get(), name, sizeof name) != 0) return errno_error("ptsname_r");
    made.slave_.reset(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
    termios settings{};
    if (!made.slave_ || ::tcgetattr(made.slave_.get(), &settings) != 0) return errno_error(name);
    if (!echoes) ::cfmakeraw(&settings);  // the answer is the program's, not the kernel's
    if (::tcsetattr(made.slave_.get(), TCSANOW, &settings) != 0) return errno_error(name);
    return made;
  }
  [[nodiscard]] int slave() const { return slave_.get(); }
  // The program has its side open now; without this one's the master tells when it ends.
  void hand_over() { slave_.reset(); }

  [[nodiscard]] Status press(char key) const {
    return ::write(master_.get(), &key, 1) == 1 ? Status(Done{}) : errno_error("pressing a key");
  }
  // False: nothing came for so long.
  [[nodiscard]] Result<bool> answers(milliseconds within) const {
    pollfd wanted{master_.get(), POLLIN, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(within.count()));
    if (ready < 0) return errno_error("waiting for an answer");
    if (ready == 0) return false;
    char text[4096];
    if (::read(master_.get(), text, sizeof text) <= 0) return Error(EPIPE, "the program in the terminal has ended");
    return true;
  }
  // Reads until nothing more comes for that long.
  [[nodiscard]] Status drain(milliseconds quiet) const {
    for (;;) {
      const auto more = answers(quiet);
      if (!more) return more.error();
      if (!*more) return Done{};
    }
  }

 private:
  Fd master_, slave_;
};

Result<std::vector<double>> type(const Terminal& terminal, const Setup& setup, milliseconds pause, bool shell) {
  std::vector<double> ms;
  for (int i = 0; i < setup.iterations; ++i) {
    std::this_thread::sleep_for(pause);
    if (shell && i > 0 && i % keys_a_line == 0) {
      if (Status pressed = terminal.press(empty_line); !pressed) return pressed.error();
      if (Status quiet = terminal.drain(pause); !quiet) return quiet.error();
    }
    if (interrupted()) return Error(EINTR, "typing");
    const auto pressed_at = std::chrono::steady_clock::now();
    if (Status pressed = terminal.press('x'); !pressed) return pressed.error();
    const auto answered = terminal.answers(longest);
    if (!answered) return answered.error();
    if (!*answered) {
      ms.push_back(static_cast<double>(longest.count()));  // at least; the person goes away
      return ms;
    }
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - pressed_at).count());
  }
  return ms;
}

// The rule for a user's programs would find the loops as well.
Status manage(const Daemon& daemon, const std::vector<Child>& hogs) {
  for (const Child& hog : hogs)
    if (Status managed = daemon.order({"enroll", "--class", "application", std::to_string(hog.pid())}); !managed)
      return managed;
  return Done{};
}

// The program and the loops, which use one and a half times as much memory as their group may have.
struct ShortMemory {
  std::unique_ptr<SwapSpace> swap;
  std::unique_ptr<MemoryGroup> group;
  std::unique_ptr<MemoryHogs> hogs;  // none: memory is not short

  static Result<std::unique_ptr<ShortMemory>> make(const Context& context, const Setup& setup, const Team& team) {
    const Options::Response& asked = context.options.response;
    auto made = std::make_unique<ShortMemory>();
    if (asked.memory_mib == 0) return made;
    const std::int64_t limit = std::int64_t{asked.memory_mib} << 20, needed = limit + limit / 2;
    auto swap = SwapSpace::make(asked.swap, 4 * limit, team.dir());
    if (!swap) return swap.error();
    made->swap = std::move(*swap);
    auto group = MemoryGroup::make(limit);
    if (!group) return group.error();
    made->group = std::move(*group);
    if (Status taken = made->group->take(team.pid_of(0)); !taken) return taken.error();
    const int count = setup.extra.value("memory_hogs", 0);
    auto hogs = MemoryHogs::start(count, needed / std::max(count, 1), *made->group, context.cpus);
    if (!hogs) return hogs.error();
    made->hogs = std::move(*hogs);
    return made;
  }
  [[nodiscard]] std::uint64_t touched() const {
    std::uint64_t sum = 0;
    if (hogs)
      for (const std::uint64_t one : hogs->touched()) sum += one;
    return sum;
  }
};

Result<Measured> one_response(const Context& context, const Setup& setup) {
  auto made = Team::make(context, setup);
  if (!made) return made.error();
  Team& team = **made;
  const bool shell = setup.mechanism == "bash";
  auto terminal = Terminal::open(shell);
  if (!terminal) return terminal.error();
  RoleSpec program;
  program.role.role = "program";
  program.role.word = setup.mechanism;
  program.role.fds = {terminal->slave()};
  program.class_name = setup.under == "swapd" ? "application" : "";
  if (Status added = team.add(program); !added) return added.error();
  auto memory = ShortMemory::make(context, setup, team);
  if (!memory) return memory.error();
  const std::vector<Child>& hogs = (*memory)->hogs ? (*memory)->hogs->children() : team.hogs();
  if (Status loaded = team.load_up(); !loaded) return loaded.error();
  if (team.daemon() != nullptr)
    if (Status managed = manage(*team.daemon(), hogs); !managed) return managed.error();
  terminal->hand_over();
  if (Status begun = team.begin(); !begun) return begun.error();
  const milliseconds pause(std::lround(context.options.response.pause_ms));
  if (shell)
    if (Status quiet = terminal->drain(milliseconds(1000)); !quiet) return quiet.error();
  const auto meter = Meter::start(team.daemon(), hogs);
  const std::uint64_t touched = (*memory)->touched(), swapped = vmstat("pswpout");
  if (!meter) return meter.error();
  auto ms = type(*terminal, setup, pause, shell);
  if (!ms) return ms.error();
  const auto cost = meter->stop();
  if (!cost) return cost.error();
  const std::uint64_t pages = (*memory)->touched() - touched, out = vmstat("pswpout") - swapped;
  auto measured = team.finish_after_done();
  if (!measured) return measured;
  measured->samples_ms = std::move(*ms);
  const double cpus = static_cast<double>(context.cpus.size());
  if (!hogs.empty()) measured->extra["hogs_cpu_share"] = rounded(cost->hogs_cpu_s / cost->wall_s / cpus);
  if ((*memory)->hogs) {
    measured->extra["pages_per_s"] = rounded(static_cast<double>(pages) / cost->wall_s);
    measured->extra["swapped_out_per_s"] = rounded(static_cast<double>(out) / cost->wall_s);
  }
  if (team.daemon() != nullptr) measured->extra["swapd_cpu_share"] = rounded(cost->swapd_cpu_s / cost->wall_s);
  return measured;
}

// A person's shell gives each of its jobs a process group.
Status answer_keys(const Role& role, int terminal) {
  (void)::setpgid(0, 0);
  char key = 0;
  while (::read(terminal, &key, 1) == 1) {
    role.work().run_ms(role.options().work_ms);
    if (::write(terminal, &key, 1) != 1) return errno_error("answering");
  }
  return Done{};
}

}  // namespace

Result<std::vector<nlohmann::json>> run_response(const Context& context) {
  const Options& options = context.options;
  std::vector<Case> cases;
  for (const std::string& program : options.response.programs) {
    Setup setup{.mechanism = program, .hogs_free = true, .iterations = options.iterations, .work_ms = options.work_ms};
    setup.demand_ms = options.work_ms + options.response.pause_ms;
    setup.extra["pause_ms"] = options.response.pause_ms;
    if (options.response.memory_mib > 0) setup.extra["memory_mib"] = options.response.memory_mib;
    for (Setup& one : spread(setup, options)) {
      // The loops are those that use memory.
      if (options.response.memory_mib > 0) one.extra["memory_hogs"] = std::exchange(one.hogs, 0);
      cases.push_back({std::move(one), [&context](const Setup& s) { return one_response(context, s); }});
    }
  }
  const auto rows = measure(cases, options.repeat, options.progress);
  if (!rows) return rows.error();
  return lines(*rows, options);
}

void response_options(CLI::App& app, Options& options) {
  app.add_option("--program", options.response.programs,
                 "What is in the terminal: own (it computes --work-ms for each key) or bash; a list")
      ->delimiter(',')
      ->check(CLI::IsMember({"own", "bash"}));
  app.add_option("--pause-ms", options.response.pause_ms, "Between an answer and the next key")
      ->check(CLI::Range(1.0, 60'000.0));
  app.add_option("--memory-mib", options.response.memory_mib,
                 "The loops of --hogs use one and a half times as much memory as this, which they may have; 0: none")
      ->check(CLI::Range(0, 16'384));
  swap_option(app, options);
}

void response_defaults(const CLI::App& chosen, Options& options) {
  if (chosen.count("--iterations") == 0) options.iterations = 200;
  if (chosen.count("--hogs") == 0) options.hogs = {0, 20};
  if (chosen.count("--work-ms") == 0) options.work_ms = 1;
  options.policy = std::string(desktop_policy) + (options.response.memory_mib > 0 ? with_memory : "");
}

Status response_role(Role& role) {
  if (Status go = role.wait_for_go(); !go) return go;
  const int terminal = role.options().fds.at(0);
  if (role.options().word != "bash") return answer_keys(role, terminal);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::dup2(terminal, fd) < 0) return errno_error("dup2");
  ::execl("/bin/bash", "bash", "--norc", "--noprofile", "-i", static_cast<char*>(nullptr));
  return errno_error("/bin/bash");
}

}  // namespace swapd::bench
