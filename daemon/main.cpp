// swapd: options, the processes (front, guard, daemon), protection of itself, and the control thread's event loop. The
// only place where the stages are wired together.
#include <malloc.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>

#include "actuate/recovery.h"
#include "enroll/attachments.h"
#include "control/daemon_backend.h"
#include "bus/message_bus.h"
#include "bus/server.h"
#include "shaping/classes.h"
#include "config.h"
#include "guard/fd_store.h"
#include "shaping/freezer_groups.h"
#include "daemonize.h"
#include "guard/guard.h"
#include "guard/guard_watch.h"
#include "enroll/launches.h"
#include "state/persistent_state.h"
#include "control/confidence_file.h"
#include "log/log.h"
#include "control/metrics_file.h"
#include "enroll/auto_enroller.h"
#include "observe/seccomp/own_listener.h"
#include "options.h"
#include "enroll/own_listeners.h"
#include "reexec.h"
#include "record/replay_file.h"
#include "enroll/restore_members.h"
#include "control/conflicts.h"
#include "sys/bpf/bpf_pieces.h"
#include "sys/bpf/bpf_tracer.h"
#include "sys/sched/groups.h"
#include "sys/sched/io_groups.h"
#include "sys/process/pidfd.h"
#include "sys/process/privilege.h"
#include "sys/process/self_process.h"
#include "sys/netlink/sock_diag.h"

namespace swapd::daemon {
namespace {

// What swapd does against the load it fights. Each line of the answer says what is missing and what still works.
std::vector<std::string> protect_self() {
  std::vector<std::string> warnings;
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
  ::mallopt(M_ARENA_MAX, 4);
  if (const Status locked = sys::lock_memory(); !locked)
    warnings.push_back(locked.error().text() + "; swapd may stall when memory is short");
  if (const Status nice = sys::set_thread_nice(0, -10); !nice)
    warnings.push_back(nice.error().text() + "; answers come late under load");
  // Ours alone, because daemonize.cpp made a session for us.
  if (const Status group = sys::set_own_autogroup_nice(-20); !group && !group.error().gone())
    warnings.push_back(group.error().text() + "; receivers compete with other sessions as equals");
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  return warnings;
}

struct Loop {
  sd_event* event = nullptr;
  Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() { sd_event_unref(event); }
};

int on_signal(sd_event_source* source, const signalfd_siginfo* info, void* /*data*/) {
  spdlog::info("signal {}: giving everything back", info->ssi_signo);
  return sd_event_exit(sd_event_source_get_event(source), 0);
}

// bpf where the kernel and the privileges are there: tried, not compared with versions.
struct Chosen {
  std::unique_ptr<sys::BpfTracer> tracer;  // null: seccomp
  std::string reason;
};
Chosen choose_observer(const std::string& wanted, const std::string& btf) {
  if (wanted == "seccomp") return {nullptr, "asked for"};
  auto opened = sys::BpfTracer::open({.btf = btf, .follow = false});
  if (!opened) return {nullptr, opened.error().text()};
  return {std::move(opened).value(),
          wanted == "bpf" ? "asked for" : "BTF, the BPF programs and the privileges are there"};
}

void log_missing(const MissingPiece& piece) {
  spdlog::warn("missing: {}: {}; {}", piece.what, piece.why, piece.instead);
}

// A rule's nice value is its program's own: it divides what the program's session has, where sessions come first.
// Empty: that holds for no rule here.
std::string nice_within_sessions(const std::vector<policy::NamedRule>& rules, const sys::Groups& groups) {
  std::string names;
  for (const auto& [name, rule] : rules)
    if (rule.manage && rule.base && !rule.base->realtime() && rule.base->nice != 0)
      names += (names.empty() ? "" : ", ") + ("[match." + name + "]");
  if (names.empty() || !groups.autogroups()) return "";
  return "the nice value of " + names +
         " counts against programs of the same session only: kernel.sched_autogroup_enabled is 1, and autogroups (as "
         "cgroups with the cpu controller) share the CPUs before nice values do";
}

// Calls the member whenever there is something to read.
template <auto member, typename T>
void on_readable(sd_event* event, int fd, T& object) {
  sd_event_add_io(
      event, nullptr, fd, EPOLLIN,
      [](sd_event_source*, int, std::uint32_t, void* data) {
        (static_cast<T*>(data)->*member)();
        return 0;
      },
      &object);
}

// Ends with this code where it is to become another swapd.
constexpr int becomes_another = 3;

// Guards that have ended, those of the swapd included that was this process before.
int on_child(sd_event_source* /*source*/, const signalfd_siginfo* /*info*/, void* /*data*/) {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  return 0;
}

int run(const Options& options, const LoadedPolicy& loaded, Guard& guard, FdStore& store, const CommandLine& command,
        Fd ready) {
  const policy::Policy& policy = loaded.policy;
  // Before the first thread: signals are the event loop's alone.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    ::signal(signal, SIG_DFL);  // a shell's background job ignores SIGINT, and what is ignored never gets to a signalfd
    sigaddset(&signals, signal);
  }
  sigaddset(&signals, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  sys::keep_needed_capabilities();
  start_log(options.log_level);
  std::vector<std::string> warnings = protect_self();

  Loop loop;
  if (sd_event_default(&loop.event) < 0) {
    spdlog::error("cannot make an event loop");
    return 1;
  }
  ::signal(SIGPIPE, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    sd_event_add_signal(loop.event, nullptr, signal, on_signal, nullptr);
  sd_event_add_signal(loop.event, nullptr, SIGCHLD, on_child, nullptr);
  on_child(nullptr, nullptr, nullptr);  // of who has ended before

  const sys::Procfs procfs;
  sys::SockDiag diag;
  const sys::LinuxScheduler scheduler;
  const sys::LinuxGroups groups;
  sys::LinuxIoGroups bfq_groups(sys::LinuxIoGroups::By::bfq), iocost_groups(sys::LinuxIoGroups::By::iocost);
  observe::Resolver resolver(procfs, diag);
  const SteadyClock clock;

  if (const Status usable = check_state_dir(options.state_dir); !usable) {
    spdlog::error("{}; give another with --state-dir", usable.error().context());
    stop_log();
    return 1;
  }
  const auto lock = lock_state(options.state_dir);
  if (!lock) {
    spdlog::error("{}", lock.error().code() == EBUSY ? lock.error().context() : lock.error().text());
    stop_log();
    return 1;
  }
  sys::refuse_programs(options.refuse);
  Chosen chosen = choose_observer(options.observe, options.btf);
  if (!chosen.tracer && options.observe == "bpf") {
    spdlog::error("--observe bpf: {}; use --observe auto or seccomp", chosen.reason);
    stop_log();
    return 1;
  }
  const std::string observer = chosen.tracer ? "bpf" : "seccomp";
  const std::vector<MissingPiece> missing = chosen.tracer ? chosen.tracer->missing() : std::vector<MissingPiece>();
  for (const MissingPiece& piece : missing) log_missing(piece);
  Shaper shaper(procfs, clock, guard.delayed(),
                {.slice = policy.shaping.slice,
                 .dry_run = options.dry_run,
                 .frozen = guard.frozen(),
                 .state_dir = options.dry_run ? std::string() : options.state_dir});
  if (!options.dry_run) FreezerGroups::clear_left(options.state_dir);
  Classes classes(shaper, policy, options.dry_run ? std::string() : options.state_dir);
  for (const std::string& line : classes.begin()) warnings.push_back(line);
  Engine::Options of_engine = engine_options(policy, options);
  of_engine.actuate.disk_groups = {{actuate::DiskGroups::By::bfq, &bfq_groups},
                                   {actuate::DiskGroups::By::iocost, &iocost_groups}};
  Engine engine(procfs, scheduler, groups, resolver, clock, std::move(of_engine), std::move(chosen.tracer), shaper);
  if (const Status started = engine.start(warnings); !started) {
    spdlog::error("{}", started.error().text());
    return 1;
  }
  shaper.ask_of_gates([&engine](pid_t pid) {
    bool is = false;
    engine.call([&](const Engine& e) { is = e.has_io(pid); });
    return is;
  });
  OwnListeners own_listeners(procfs);
  observe::on_own_listener([&](pid_t tid) { own_listeners.fails(tid); });
  Launches launches(engine, guard, store, shaper, clock, [](const std::string& line) { spdlog::warn("{}", line); });
  Attachments attachments(engine, launches, procfs, scheduler, clock,
                          {.program = find_own_program("swapd-attach"),
                           .socket = options.attach_socket,
                           .stale = policy.observe.guard_stale,
                           .state_dir = options.state_dir});
  for (const std::string& line : warnings) spdlog::warn("{}", line);
  if (const std::string note = guard.note(); !note.empty()) spdlog::warn("{}", note);
  AutoLimitController auto_shaper(engine, shaper, procfs, clock);
  classes.begin_automatic(auto_shaper);
  const std::string boot_id = actuate::read_boot_id();
  Resumed resumed;  // a dry run changes nothing, and so gives nothing back: it begins with nobody
  if (!options.dry_run)
    resumed = resume(engine, launches, store, procfs, scheduler, policy, classes, options.state_dir, boot_id);
  store.keep_slots(guard.memory());
  for (const std::string& line : resumed.notes) spdlog::info("{}", line);
  std::optional<MembersFile> members_file;
  if (!options.dry_run)
    members_file.emplace(loop.event, engine, procfs, options.state_dir, boot_id, std::move(resumed.lost));
  std::optional<ConfidenceFile> lessons_file;
  if (!options.dry_run) lessons_file.emplace(loop.event, engine, options.state_dir, boot_id);
  // A private swapd is for one program; the machine's rules are another's affair.
  const auto rules = options.exit_with_pid > 0 ? std::vector<policy::NamedRule>() : policy.rules;
  std::optional<AutoEnroller> newcomers;
  ConflictMonitor neighbours(loop.event, procfs, policy.donation, [&] {
    bfq_groups.refresh();
    iocost_groups.refresh();
  });
  DaemonBackend backend(engine, launches, attachments, procfs, scheduler, resolver, policy, classes, shaper,
                        {.version = SWAPD_VERSION,
                         .observer = observer,
                         .observer_reason = chosen.reason,
                         .warnings = warnings,
                         .missing = missing,
                         .surroundings = [&] { return neighbours.now(); },
                         .log_drops = log_drops,
                         .guard_note = [&] { return guard.note(); },
                         .own_listeners = &own_listeners,
                         .by_hand =
                             [&](pid_t pid) {
                               if (newcomers) newcomers->by_hand(pid);
                             },
                         .newcomers = [&] { return newcomers ? newcomers->counts() : AutoEnroller::Counts{}; },
                         .restart = [&]() -> Status {
                           if (options.exit_with_pid > 0) return Error(EINVAL, "a private swapd is not restarted");
                           Status can = can_reexec(command, options.config);
                           if (can) sd_event_exit(loop.event, becomes_another);
                           return can;
                         },
                         .settings = loaded.settings});
  const auto give_up = [&] {
    auto_shaper.stop();
    engine.stop();
    shaper.leave();
    stop_log();
    return 1;
  };
  bus::Server server(loop.event, backend, options.socket, {.requests = policy.quota.requests});
  if (const Status listening = server.listen(); !listening) {
    spdlog::error("{}", listening.error().text());
    return give_up();
  }
  bus::MessageBus message_bus(loop.event, server.manager(),
                              [](const std::string& what) { spdlog::warn("{}; the private socket goes on", what); });
  if (options.bus != "none") {
    const auto which = options.bus == "system" ? bus::MessageBus::Which::system : bus::MessageBus::Which::session;
    if (const Status serving = message_bus.serve(which); !serving) {
      spdlog::error("{}", serving.error().context());
      return give_up();
    }
  }

  // To leave programs alone nobody need look.
  if (std::ranges::any_of(rules, [](const policy::NamedRule& r) { return r.rule.manage; })) {
    std::vector<MissingPiece> of_rules;
    auto events = open_exec_events(followed_facts(rules), of_rules);
    for (MissingPiece& piece : of_rules) {
      log_missing(piece);
      backend.misses(std::move(piece));
    }
    if (std::string line = nice_within_sessions(rules, groups); !line.empty()) {
      spdlog::warn("{}", line);
      backend.warn(line);
    }
    const auto known = [&](pid_t pid, std::uint64_t start_time) {
      bool is = true;  // where the engine has stopped, nobody is taken in
      engine.call([&](const Engine& e) { is = e.knows(pid, start_time); });
      return is;
    };
    newcomers.emplace(
        backend, procfs, rules,
        AutoEnroller::Options{.known = known, .installs_filters = engine.needs_listeners(), .dry_run = options.dry_run});
    newcomers->begin(loop.event, std::move(events));
  }

  std::optional<MetricsFile> metrics;
  if (!options.metrics.empty()) {
    metrics.emplace(loop.event, backend, options.metrics);
    if (const Status written = metrics->begin(); !written) {
      spdlog::error("--metrics: {}", written.error().text());
      return give_up();
    }
  }

  on_readable<&Launches::reap>(loop.event, launches.wake_fd(), launches);
  on_readable<&Attachments::reap>(loop.event, attachments.wake_fd(), attachments);
  on_readable<&DaemonBackend::forward_notes>(loop.event, engine.notes_fd(), backend);
  const GuardWatch guard_watch(loop.event, guard);
  Fd companion;
  if (options.exit_with_pid > 0) {
    auto opened = sys::open_pidfd(options.exit_with_pid);
    if (!opened) {
      spdlog::warn("process {} has ended already", options.exit_with_pid);
      sd_event_exit(loop.event, 0);
    } else {
      companion = std::move(opened).value();
      sd_event_add_io(
          loop.event, nullptr, companion.get(), EPOLLIN,
          [](sd_event_source* source, int, std::uint32_t, void*) {
            return sd_event_exit(sd_event_source_get_event(source), 0);
          },
          nullptr);
    }
  }
  spdlog::info("swapd {} observes with {} ({}) and answers at {}", SWAPD_VERSION, observer, chosen.reason,
               options.socket);
  sd_event_set_watchdog(loop.event, 1);  // where the service manager asks for it
  sd_notify(0, "READY=1");
  const char byte = 1;
  for (const int fd : {ready.get(), options.ready_fd})
    if (fd >= 0) (void)!::write(fd, &byte, 1);
  ready.reset();
  if (options.ready_fd >= 0) ::close(options.ready_fd);

  const int end = sd_event_loop(loop.event);
  sd_notify(0, end == becomes_another ? "RELOADING=1" : "STOPPING=1");
  guard.say_goodbye();
  attachments.stop();
  auto_shaper.stop();
  if (members_file) members_file->write();
  if (lessons_file) lessons_file->write();
  engine.stop();  // every thread has its own attributes again before anything else ends
  backend.end_recording();
  launches.stop();
  shaper.leave();
  std::error_code ignored;
  if (options.exit_with_pid > 0) std::filesystem::remove_all(options.state_dir, ignored);
  stop_log();
  return end == becomes_another ? becomes_another : 0;
}

int main_of(int argc, char** argv) {
  int status = 0;
  auto options = parse_options(argc, argv, status);
  if (!options) return status;
  if (options->check_config) {
    const auto policy = load_policy(*options->check_config);
    if (!policy) {
      std::cerr << "swapd: " << policy.error().context() << '\n';
      return 2;
    }
    const auto files = policy_files(*options->check_config);
    for (const std::string& file : files ? *files : std::vector<std::string>()) std::cout << file << ": good\n";
    return 0;
  }
  if (!options->replay.empty()) return replay_file(options->replay, options->json);
  const auto policy = load_policy(options->config);
  if (!policy) {
    std::cerr << "swapd: " << policy.error().context() << '\n';
    return 2;
  }
  const CommandLine command = own_command_line(argc, argv);
  const bool reborn = is_reexec();
  const unsigned before = restart_count();
  if (reborn || before > 0) options->ready_fd = -1;  // a number of the first one's
  auto ready = reborn ? Result<Fd>(Fd()) : split_front(options->foreground);
  if (!ready) {
    std::cerr << "swapd: " << ready.error().text() << '\n';
    return 1;
  }
  std::error_code unknown;
  options->state_dir = std::filesystem::absolute(options->state_dir, unknown);
  GuardOptions guard_options{
      .program = find_guard(), .stale = policy->policy.observe.guard_stale, .state_dir = options->state_dir};
  guard_options.restart_count = before;
  if (options->respawn || (!options->foreground && options->exit_with_pid == 0)) {
    guard_options.respawn = {command.directory, command.program};
    guard_options.respawn.insert(guard_options.respawn.end(), command.arguments.begin(), command.arguments.end());
  }
  guard_options.socket = options->guard_socket;
  FdStore store = FdStore::open();
  auto guard = Guard::start(std::move(guard_options));
  if (!guard) {
    std::cerr << "swapd: " << guard.error().text() << '\n';
    return 1;
  }
  status = run(*options, *policy, *guard, store, command, std::move(ready).value());
  if (status != becomes_another) return status;
  const Status became = become(command);
  std::cerr << "swapd: " << became.error().text() << '\n';
  return 1;
}

}  // namespace
}  // namespace swapd::daemon

int main(int argc, char** argv) { return swapd::daemon::main_of(argc, argv); }
