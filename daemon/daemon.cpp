#include "daemon.h"

#include <malloc.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>

#include "actuate/recovery.h"
#include "log/log.h"
#include "observe/seccomp/own_listener.h"
#include "shaping/freezer_groups.h"
#include "state/persistent_state.h"
#include "sys/bpf/bpf_pieces.h"
#include "sys/process/pidfd.h"
#include "sys/process/privilege.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {
namespace {

constexpr std::array ending_signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
// The event loop's code where this process is to become another swapd.
constexpr int reexec_code = 3;

constexpr rlim_t roomy = 16384;  // open files: a table of 130 kB

// Arms swapd against the load it fights. Each line of the answer says what is missing and what still works.
std::vector<std::string> protect_self() {
  std::vector<std::string> warnings;
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
  ::mallopt(M_ARENA_MAX, 4);
  if (const Status locked = sys::lock_memory(); !locked)
    warnings.push_back(locked.error().text() + "; swapd may stall when memory is short");
  if (const Status nice = sys::set_thread_nice(0, -10); !nice)
    warnings.push_back(nice.error().text() + "; answers come late under load");
  // The autogroup is swapd's alone, because daemonize() made a session for it.
  if (const Status group = sys::set_own_autogroup_nice(-20); !group && !group.error().gone())
    warnings.push_back(group.error().text() + "; receivers compete with other sessions as equals");
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  if (const Status room = sys::reserve_descriptors(static_cast<unsigned>(std::min<rlim_t>(files.rlim_cur, roomy)));
      !room)
    warnings.push_back(room.error().text() + "; help may be late by seconds while the table of open files grows");
  return warnings;
}

int on_signal(sd_event_source* source, const signalfd_siginfo* info, void* /*data*/) {
  spdlog::info("signal {}: giving everything back", info->ssi_signo);
  return sd_event_exit(sd_event_source_get_event(source), 0);
}

// Guards that have ended, also those of the swapd that this process was before.
int on_child(sd_event_source* /*source*/, const signalfd_siginfo* /*info*/, void* /*data*/) {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  return 0;
}

void log_missing(const MissingPiece& piece) {
  spdlog::warn("missing: {}: {}; {}", piece.what, piece.why, piece.instead);
}

// A rule's nice value is its program's own: it divides what the program's session has, where sessions come first.
// Empty: that holds for no rule here.
std::string nice_within_sessions(const std::vector<policy::NamedRule>& rules, const sys::Groups& groups) {
  constexpr std::size_t named = 5;
  std::string names;
  std::size_t count = 0;
  for (const auto& [name, rule] : rules)
    if (rule.manage && rule.base && !rule.base->realtime() && rule.base->nice != 0 && ++count <= named)
      names += (names.empty() ? "" : ", ") + ("[match." + name + "]");
  if (count > named) names += " and " + std::to_string(count - named) + " more";
  if (names.empty() || !groups.autogroups()) return "";
  return "the nice value of " + names +
         " counts against programs of the same session only: kernel.sched_autogroup_enabled is 1, and autogroups (as "
         "cgroups with the cpu controller) share the CPUs before nice values do";
}

// An error whose text is this line and no more.
Error line(std::string text) { return {0, std::move(text)}; }

}  // namespace

void Daemon::block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : ending_signals) {
    ::signal(signal, SIG_DFL);  // a shell's background job ignores SIGINT, and what is ignored never gets to a signalfd
    sigaddset(&signals, signal);
  }
  sigaddset(&signals, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

Result<std::unique_ptr<Daemon>> Daemon::open(const Inputs& inputs) {
  const Options& options = inputs.options;
  Prepared prepared{.in = inputs, .lock = {}, .observing = {}, .warnings = protect_self()};
  if (const Status usable = check_state_dir(options.state_dir); !usable)
    return line(usable.error().context() + "; give another with --state-dir");
  auto lock = lock_state(options.state_dir);
  if (!lock) return lock.error().code() == EBUSY ? line(lock.error().context()) : std::move(lock).error();
  prepared.lock = std::move(lock).value();
  sys::refuse_programs(options.refuse);
  // bpf where the kernel and the privileges are there: tried, not compared with versions.
  std::unique_ptr<sys::BpfTracer> tracer;
  Observing& observing = prepared.observing;
  observing = {.name = "seccomp", .reason = "asked for", .missing = {}};
  if (options.observe != "seccomp") {
    if (auto opened = sys::BpfTracer::open({.btf = options.btf, .follow = false})) {
      tracer = std::move(opened).value();
      observing.name = "bpf";
      if (options.observe != "bpf") observing.reason = "BTF, the BPF programs and the privileges are there";
      observing.missing = tracer->missing();
    } else {
      observing.reason = opened.error().text();
    }
  }
  if (!tracer && options.observe == "bpf")
    return line("--observe bpf: " + observing.reason + "; use --observe auto or seccomp");
  for (const MissingPiece& piece : observing.missing) log_missing(piece);
  return std::unique_ptr<Daemon>(new Daemon(std::move(prepared), std::move(tracer)));
}

Daemon::Daemon(Prepared prepared, std::unique_ptr<sys::BpfTracer> tracer)
    : prepared_(std::move(prepared)),
      shaper_(surfaces_.procfs, surfaces_.clock, prepared_.in.guard.delayed(),
              {.slice = policy().shaping.slice,
               .dry_run = options().dry_run,
               .frozen = prepared_.in.guard.frozen(),
               .state_dir = changed_state_dir()}),
      classes_(shaper_, policy(), changed_state_dir()),
      engine_(surfaces_.kernel(), surfaces_.resolver, engine_config(), std::move(tracer), shaper_),
      own_listeners_(surfaces_.procfs),
      launches_(engine_, prepared_.in.guard, prepared_.in.store, shaper_, surfaces_.clock,
                [](const std::string& line) { spdlog::warn("{}", line); }),
      attachments_(engine_, launches_, surfaces_.procfs, surfaces_.scheduler, surfaces_.clock,
                   {.program = find_own_program("swapd-attach"),
                    .socket = options().attach_socket,
                    .stale = policy().observe.guard_stale,
                    .state_dir = options().state_dir}),
      auto_limits_(engine_, shaper_, surfaces_.procfs, surfaces_.clock) {
  shaper_.ask_of_gates([this](pid_t pid) {
    bool is = false;
    engine_.call([&](Engine& e) { is = e.membership().listeners().has_io(pid); });
    return is;
  });
  observe::on_own_listener([this](pid_t tid) { own_listeners_.fails(tid); });
}

// In this order, because each part needs those that end after it for its last act.
Daemon::~Daemon() {
  attachments_.stop();
  auto_limits_.stop();
  files_.write();
  engine_.stop();  // every thread has its own attributes again before anything else ends
  if (interfaces_) interfaces_->backend.end_recording();
  launches_.stop();
  shaper_.leave();
  std::error_code ignored;
  if (options().exit_with_pid > 0) std::filesystem::remove_all(options().state_dir, ignored);
}

void Daemon::StateFiles::write() {
  if (members) members->write();
  if (confidences) confidences->write();
}

Daemon::Interfaces::Interfaces(Daemon& daemon, const DaemonBackend::Parts& parts, DaemonBackend::About about)
    : backend(daemon.surfaces_.kernel(), parts, std::move(about)),
      server(daemon.loop_.get(), backend, daemon.options().socket, {.requests = daemon.policy().quota.requests}),
      message_bus(daemon.loop_.get(), server.manager(),
                  [](const std::string& what) { spdlog::warn("{}; the private socket goes on", what); }),
      containers({.engine = daemon.engine_,
                  .launches = daemon.launches_,
                  .kernel = daemon.surfaces_.kernel(),
                  .admit = [this](const OciContainer& container) { return backend.admit(container); }}) {}

Engine::Options Daemon::engine_config() {
  Engine::Options out = engine_options(policy(), options());
  out.actuate.disk_groups = {{actuate::DiskGroups::By::bfq, &surfaces_.bfq_groups},
                             {actuate::DiskGroups::By::iocost, &surfaces_.iocost_groups}};
  out.memory_manager.away.memory = prepared_.in.guard.away();
  out.memory_manager.away.state_dir = changed_state_dir();
  return out;
}

Status Daemon::start() {
  if (Status opened = loop_.open(); !opened) return opened;
  if (Status listening = listen_for_signals(); !listening) return listening;
  if (!options().dry_run) FreezerGroups::clear_left(options().state_dir);
  std::vector<std::string>& warnings = prepared_.warnings;
  for (std::string& warning : classes_.begin()) warnings.push_back(std::move(warning));
  if (Status started = engine_.start(warnings); !started) return started;
  for (const std::string& warning : warnings) spdlog::warn("{}", warning);
  if (const std::string note = prepared_.in.guard.note(); !note.empty()) spdlog::warn("{}", note);
  classes_.begin_automatic(auto_limits_);
  restore();
  conflicts_.emplace(loop_.get(), surfaces_.procfs, policy().donation, [this] {
    surfaces_.bfq_groups.refresh();
    surfaces_.iocost_groups.refresh();
  });
  if (Status answering = answer_clients(); !answering) return answering;
  begin_enrolling();
  if (Status written = write_metrics(); !written) return written;
  if (Status listening = listen(); !listening) return listening;
  spdlog::info("swapd {} observes with {} ({}) and answers at {}", SWAPD_VERSION, prepared_.observing.name,
               prepared_.observing.reason, options().socket);
  return Done{};
}

Status Daemon::listen_for_signals() {
  for (const int signal : ending_signals)
    if (Status added = loop_.on_signal(signal, on_signal); !added) return added;
  if (Status added = loop_.on_signal(SIGCHLD, on_child); !added) return added;
  on_child(nullptr, nullptr, nullptr);  // children that have ended before
  return Done{};
}

// A dry run changes nothing, and so gives nothing back: it begins with no members, and keeps no files.
void Daemon::restore() {
  const std::string boot_id = actuate::read_boot_id();
  const std::string& state_dir = options().state_dir;
  Resumed resumed;
  if (!options().dry_run)
    resumed = resume(engine_, launches_, prepared_.in.store, surfaces_.procfs, surfaces_.scheduler, policy(), classes_,
                     state_dir, boot_id);
  prepared_.in.store.keep_slots(prepared_.in.guard.memory());
  for (const std::string& note : resumed.notes) spdlog::info("{}", note);
  if (options().dry_run) return;
  files_.members.emplace(loop_.get(), engine_, surfaces_.procfs, state_dir, boot_id, std::move(resumed.lost));
  files_.confidences.emplace(loop_.get(), engine_, state_dir, boot_id);
}

DaemonBackend::About Daemon::about() {
  return {.version = SWAPD_VERSION,
          .observer = prepared_.observing.name,
          .observer_reason = prepared_.observing.reason,
          .warnings = prepared_.warnings,
          .missing = prepared_.observing.missing,
          .surroundings = [this] { return conflicts_->now(); },
          .log_drops = log_drops,
          .guard_note = [this] { return prepared_.in.guard.note(); },
          .guard_pid = [this] { return prepared_.in.guard.pid(); },
          .own_listeners = &own_listeners_,
          .by_hand =
              [this](pid_t pid) {
                if (auto_enroller_) auto_enroller_->by_hand(pid);
              },
          .newcomers = [this] { return auto_enroller_ ? auto_enroller_->counts() : AutoEnroller::Counts{}; },
          .restart = [this] { return restart(); },
          .settings = prepared_.in.loaded.settings};
}

Status Daemon::restart() {
  if (options().exit_with_pid > 0) return Error(EINVAL, "a private swapd is not restarted");
  Status can = can_reexec(prepared_.in.command, options().config);
  if (can) loop_.exit(reexec_code);
  return can;
}

Status Daemon::answer_clients() {
  const DaemonBackend::Parts parts{engine_, launches_, attachments_, surfaces_.resolver, policy(), classes_, shaper_};
  interfaces_.emplace(*this, parts, about());
  if (Status listening = interfaces_->server.listen(); !listening) return listening;
  if (!options().oci_socket.empty())
    if (Status listening = interfaces_->containers.listen(loop_, options().oci_socket); !listening) return listening;
  if (options().bus == "none") return Done{};
  const auto which = options().bus == "system" ? bus::MessageBus::Which::system : bus::MessageBus::Which::session;
  if (const Status serving = interfaces_->message_bus.serve(which); !serving) return line(serving.error().context());
  return Done{};
}

void Daemon::begin_enrolling() {
  // A private swapd is for one program; the machine's rules are for the machine's swapd.
  if (options().exit_with_pid > 0) return;
  const std::vector<policy::NamedRule>& rules = policy().rules;
  // Rules that only leave programs alone need no look at the programs that start.
  if (std::ranges::none_of(rules, [](const policy::NamedRule& r) { return r.rule.manage; })) return;
  std::vector<MissingPiece> missing;
  auto events = open_exec_events(followed_facts(rules), missing);
  for (MissingPiece& piece : missing) {
    log_missing(piece);
    interfaces_->backend.misses(std::move(piece));
  }
  if (const std::string warning = nice_within_sessions(rules, surfaces_.groups); !warning.empty()) {
    spdlog::warn("{}", warning);
    interfaces_->backend.warn(warning);
  }
  const auto known = [this](pid_t pid, std::uint64_t start_time) {
    bool is = true;  // where the engine has stopped, no program is enrolled
    engine_.call([&](Engine& e) { is = e.membership().tracker().knows(pid, start_time); });
    return is;
  };
  const auto changed = [this](pid_t pid) { engine_.call([&](Engine& e) { e.membership().look_at_weight(pid); }); };
  auto_enroller_.emplace(interfaces_->backend, surfaces_.procfs, rules,
                         AutoEnroller::Options{.known = known,
                                               .changed = changed,
                                               .settings = {surfaces_.procfs, surfaces_.scheduler},
                                               .installs_filters = engine_.needs_listeners(),
                                               .dry_run = options().dry_run});
  auto_enroller_->begin(loop_.get(), std::move(events));
}

Status Daemon::write_metrics() {
  if (options().metrics.empty()) return Done{};
  interfaces_->metrics.emplace(loop_.get(), interfaces_->backend, options().metrics);
  if (Status written = interfaces_->metrics->begin(); !written) return std::move(written).error().in("--metrics");
  return Done{};
}

Status Daemon::listen() {
  if (Status s = loop_.on_readable<&Launches::reap>(launches_.wake_fd(), "launches", launches_); !s) return s;
  if (Status s = loop_.on_readable<&Attachments::reap>(attachments_.wake_fd(), "attachments", attachments_); !s)
    return s;
  if (Status s = loop_.on_readable<&DaemonBackend::forward_notes>(engine_.feed().fd(), "the engine's notes",
                                                                  interfaces_->backend);
      !s)
    return s;
  others_.guard.emplace(loop_.get(), prepared_.in.guard);
  return follow_companion();
}

Status Daemon::follow_companion() {
  if (options().exit_with_pid <= 0) return Done{};
  auto opened = sys::open_pidfd(options().exit_with_pid);
  if (!opened) {
    spdlog::warn("process {} has ended already", options().exit_with_pid);
    loop_.exit(0);
    return Done{};
  }
  others_.companion = std::move(opened).value();
  return loop_.on_readable(
      others_.companion.get(), "process " + std::to_string(options().exit_with_pid),
      [](sd_event_source* source, int, std::uint32_t, void*) {
        return sd_event_exit(sd_event_source_get_event(source), 0);
      },
      nullptr);
}

Daemon::End Daemon::run() {
  sd_event_set_watchdog(loop_.get(), 1);  // where the service manager asks for it
  sd_notify(0, "READY=1");
  const End end = loop_.run() == reexec_code ? End::reexec : End::stopped;
  sd_notify(0, end == End::reexec ? "RELOADING=1" : "STOPPING=1");
  prepared_.in.guard.say_goodbye();
  return end;
}

}  // namespace swapd::daemon
