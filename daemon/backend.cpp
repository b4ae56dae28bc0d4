#include "backend.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "actuate/recovery.h"
#include "enrollable.h"
#include "log.h"
#include "observe/io_calls.h"
#include "observe/syscall_table.h"
#include "sys/launcher.h"
#include "sys/self.h"
#include "views.h"

namespace swapd::daemon {

namespace {

double realtime_of(Time time) {
  const auto now = std::chrono::system_clock::now() - (std::chrono::steady_clock::now() - time);
  return std::chrono::duration<double>(now.time_since_epoch()).count();
}

constexpr int most_rounds = 16;

std::string_view name(Note::Type type) {
  switch (type) {
    case Note::Type::accessed:
      return "accessed";
    case Note::Type::released:
    case Note::Type::unenrolled:
      return "released";
    case Note::Type::blocked:
      return "blocked";
    case Note::Type::woken:
      return "woken";
    case Note::Type::spawned:
      return "spawned";
    case Note::Type::execed:
      return "execed";
    case Note::Type::exited:
      return "exited";
    case Note::Type::donation_begun:
      return "donation-begun";
    case Note::Type::donation_ended:
      return "donation-ended";
    case Note::Type::ineffective:
      return "ineffective";
    case Note::Type::inversion_found:
      return "inversion-found";
    case Note::Type::limit_reached:
      return "limit-reached";
    case Note::Type::enrolled:
      return "enrolled";
  }
  return "blocked";
}

std::string_view name(observe::Costs::Method method) {
  switch (method) {
    case observe::Costs::Method::poll:
      return "poll";
    case observe::Costs::Method::perf:
      return "perf";
    case observe::Costs::Method::bpf:
      return "bpf";
  }
  return "poll";
}

observe::History history_of(const policy::Policy& policy) {
  return policy.observe.history == policy::History::calls ? observe::History::calls : observe::History::holders;
}

}  // namespace

DaemonBackend::DaemonBackend(Engine& engine, Launches& launches, Attachments& attachments, const sys::Procfs& procfs,
                             const sys::Scheduler& scheduler, observe::Resolver& resolver, const policy::Policy& policy,
                             Classes& classes, Shaper& shaper, About about)
    : engine_(engine),
      launches_(launches),
      attachments_(attachments),
      procfs_(procfs),
      scheduler_(scheduler),
      resolver_(resolver),
      policy_(policy),
      classes_(classes),
      shaper_(shaper),
      about_(std::move(about)) {
  engine_.want_journal(logs_entries());
}

Snapshot DaemonBackend::snapshot() {
  Snapshot out;
  engine_.call([&](Engine& e) { out = e.snapshot(); });
  out.delayed = shaper_.held_threads();
  return out;
}

bus::StatusView DaemonBackend::status() {
  Counters c;
  engine_.call([&](Engine& e) { c = e.counters(); });
  bus::StatusView out;
  out.version = about_.version;
  out.observer = about_.observer;
  out.observer_reason = about_.observer_reason;
  out.managed_threads = c.managed_threads;
  out.managed_processes = c.managed_processes;
  out.listeners = c.listeners;
  out.donations_active = c.donations_active;
  out.donations_total = c.donations_total;
  out.notifications_total = c.notifications;
  out.events_lost = c.events_lost;
  out.warnings = about_.warnings;
  std::ranges::copy(shaper_.missing(), std::back_inserter(out.warnings));
  if (about_.surroundings) {
    Surroundings around = about_.surroundings();
    out.rivals = std::move(around.rivals);
    std::ranges::move(around.settings, std::back_inserter(out.warnings));
  }
  out.watch_method = name(c.costs.method);
  out.watched_threads = c.costs.watched;
  out.watch_wakeups_total = c.costs.wakeups;
  out.watch_polls_total = c.costs.polls;
  out.engine_cpu_s = c.engine_cpu_s;
  out.receivers_cpu_s = c.receivers_cpu_s;
  out.worker_cpu_s = engine_.worker_cpu_seconds();
  out.resources = c.model.resources;
  out.requesters = c.model.requesters;
  out.providers = c.model.providers;
  out.over_quota = c.over_quota;
  out.paused = c.paused;
  if (about_.newcomers) {
    const Newcomers::Counts counts = about_.newcomers();
    out.match_rules = counts.rules;
    out.programs = counts.programs;
    out.matched = counts.matched;
    out.managed_by_policy = counts.managed;
  }
  out.delayed_calls = shaper_.delayed_now();
  out.delayed_calls_total = shaper_.delayed_total();
  out.log_drops = about_.log_drops ? about_.log_drops() : 0;
  out.pid = ::getpid();
  return out;
}

bus::BriefView DaemonBackend::brief() {
  Counters c;
  engine_.call([&](Engine& e) { c = e.counters(); });
  return {.observer = about_.observer,
          .paused = c.paused,
          .managed_threads = c.managed_threads,
          .managed_processes = c.managed_processes,
          .donations_active = c.donations_active};
}

std::vector<bus::ThreadView> DaemonBackend::threads() {
  Views views(snapshot(), procfs_, resolver_);
  return views.threads();
}

Result<std::vector<bus::ThreadView>> DaemonBackend::why(pid_t pid) {
  Views views(snapshot(), procfs_, resolver_);
  const auto chosen = views.select(pid);
  if (chosen.empty()) {
    if (!procfs_.thread_id(pid))
      return Error(ENOENT, "no process " + std::to_string(pid) + "; `swapctl ps` lists the managed ones");
    return Error(ENOENT, "process " + std::to_string(pid) + " is not managed; start it with `swapctl run`");
  }
  std::vector<bus::ThreadView> out;
  for (const SnapshotThread* thread : chosen) {
    bus::ThreadView view = views.thread(*thread, 32);
    const bool blocked = view.state == "blocked" || view.state == "virtual-runnable" || view.state == "delayed";
    if (blocked || chosen.size() == 1) out.push_back(std::move(view));
  }
  return out;
}

bus::WorldView DaemonBackend::world() {
  Views views(snapshot(), procfs_, resolver_);
  return views.world();
}

Result<pid_t> DaemonBackend::pid_of(int pidfd) const {
  Result<int> pid = sys::pid_of_pidfd(pidfd);
  if (pid) return *pid;
  return Error(pid.error().code() == ESRCH ? ESRCH : EINVAL, "the descriptor is not that of a process that runs");
}

bus::GraphView DaemonBackend::graph() {
  Views views(snapshot(), procfs_, resolver_);
  return views.graph();
}

std::vector<bus::SettingView> DaemonBackend::policy() {
  std::vector<bus::SettingView> out;
  for (const policy::Setting& s : about_.settings) out.push_back({s.table, s.key, s.value, s.where});
  return out;
}

Result<bus::LaunchAnswer> DaemonBackend::launch(bus::LaunchRequest request) {
  const pid_t pid = request.pid;
  const bus::Caller caller = request.caller;
  Result<bus::LaunchAnswer> answer = begin_launch(std::move(request));
  if (!answer) (void)refusals_.heard("run", pid, caller, answer.error());
  return answer;
}

Result<bus::LaunchAnswer> DaemonBackend::begin_launch(bus::LaunchRequest request) {
  if (Status may = may_touch(request.pid, request.caller); !may) return std::move(may).error();
  if (Status room = has_room(request.pid); !room) return std::move(room).error();
  auto class_name = class_of(request.class_name, request.caller);
  if (!class_name) return std::move(class_name).error();
  request.class_name = std::move(class_name).value();
  if (Status may = may_leave(request.pid, request.class_name, request.caller); !may) return std::move(may).error();
  if (request.observe != "auto" && request.observe != about_.observer && !request.observe.empty()) {
    if (request.observe != "bpf" && request.observe != "seccomp")
      return Error(EINVAL, "unknown observer '" + request.observe + "': auto, bpf or seccomp");
    return Error(EINVAL, "this swapd observes with " + about_.observer + " (" + about_.observer_reason +
                             "); use --observe auto, or a swapd of its own with --embedded");
  }
  request.shaped = classes_.shaped(request.class_name);
  bool has_listener = false, has_io = false;
  engine_.call([&](Engine& e) {
    has_listener = e.has_listener(request.pid);
    has_io = e.has_io(request.pid);
  });
  if (request.shaped && has_listener && !has_io)
    return Error(EBUSY,
                 "this process runs under a filter without I/O calls, and gets no other: run it outside of "
                 "swapctl run, or there with --class " +
                     request.class_name);
  if (!engine_.needs_listeners() && (!request.shaped || has_io)) {
    if (const auto pid = sys::pid_of_pidfd(request.pidfd.get()); !pid || *pid != request.pid)
      return Error(EINVAL, "the pidfd is not the launcher's own");
    const RosterAnswer found = list_threads(procfs_, scheduler_, {.members = {request.pid}});
    Result<std::size_t> taken = Error(ESHUTDOWN, "swapd is stopping");
    engine_.call([&](Engine& e) { taken = e.take_in(found.threads, request.class_name); });
    if (!taken) return std::move(taken).error();
    return bus::LaunchAnswer{.install = false, .program = {}};
  }
  Status again = Error(ENOENT, "");
  if (has_listener) engine_.call([&](Engine& e) { again = e.manage_again(request.pid, request.class_name); });
  if (again) return bus::LaunchAnswer{.install = false, .program = {}};
  auto program = filter(request.shaped);
  if (!program) return std::move(program).error();
  if (Status begun = launches_.begin(std::move(request)); !begun) return std::move(begun).error();
  return bus::LaunchAnswer{.install = true, .program = std::move(program).value()};
}

Result<std::string> DaemonBackend::class_of(const std::string& wanted, const bus::Caller& caller) const {
  const std::string name = wanted.empty() ? "default" : wanted;
  if (!classes_.exists(name))
    return Error(ENOENT, "no class '" + name + "': the policy has no [class." + name +
                             "], and `swapctl class create` has made none");
  if (classes_.is_open(name) || caller.may(bus::Right::administer)) return name;
  return Error(EACCES, "class '" + name +
                           "' is closed ('open = false' in the policy): only root and the policy's rules put "
                           "programs into it");
}

// With bpf calls are trapped only to be delayed.
Result<std::vector<sock_filter>> DaemonBackend::filter(bool io) const {
  std::vector<sys::TrapRule> rules;
  if (io) rules = observe::io_rules();
  if (engine_.needs_listeners()) {
    for (sys::TrapRule& rule : observe::observe_rules(history_of(policy_), policy_.observe.trap_kill))
      if (!io || observe::io_call(rule.nr) == nullptr) rules.push_back(std::move(rule));
  }
  return sys::build_filter(rules);
}

Status DaemonBackend::create_class(const std::string& name, const std::vector<bus::LimitChange>& changes,
                                   const bus::Caller& caller) {
  Status may = may_administer("make classes of", caller);
  return may ? classes_.create(name, changes) : may;
}

Status DaemonBackend::set_class(const std::string& name, const std::vector<bus::LimitChange>& changes,
                                const bus::Caller& caller) {
  Status may = may_administer("change classes of", caller);
  return may ? classes_.set(name, changes) : may;
}

// Who is in it goes on in "default".
Status DaemonBackend::remove_class(const std::string& name, const bus::Caller& caller) {
  if (Status may = may_administer("remove classes of", caller); !may) return may;
  if (Status removed = classes_.remove(name); !removed) return removed;
  engine_.call([&](Engine& e) { e.move_class(name, "default"); });
  return Done{};
}

void DaemonBackend::enroll(const bus::EnrollRequest& request, std::function<void(const Status&)> done) {
  Status begun = refusals_.heard("enroll", request.pid, request.caller, begin_enrolling(request, done));
  if (!begun || !attaching_) done(begun);
}

// Where a filter must be installed, that has only begun.
Status DaemonBackend::begin_enrolling(const bus::EnrollRequest& request,
                                      const std::function<void(const Status&)>& done) {
  attaching_ = false;
  auto class_name = class_of(request.class_name, request.caller);
  if (!class_name) return std::move(class_name).error();
  const auto tgid = procfs_.tgid(request.pid);
  if (!tgid) return Error(ENOENT, "no process " + std::to_string(request.pid));
  const auto may = [this, caller = request.caller, first = *tgid, spare = request.spare,
                    into = *class_name](pid_t pid) {
    if (spare && pid != first && spare(pid)) return Status(Error(EALREADY, "left out"));
    if (Status touch = may_touch(pid, caller); !touch) return touch;
    if (Status one = may_enroll(procfs_, pid, policy_.observe.never); !one) return one;
    if (Status leave = may_leave(pid, into, caller); !leave) return leave;
    return has_room(pid);
  };
  if (Status allowed = may(*tgid); !allowed) return allowed;
  const bool io = classes_.shaped(*class_name);
  bool has_io = false;
  engine_.call([&](Engine& e) { has_io = e.has_io(*tgid); });
  attaching_ = engine_.needs_listeners() || (io && !has_io);
  if (attaching_) {
    auto program = filter(io);
    if (!program) return std::move(program).error();
    return attachments_.begin({.pid = *tgid,
                               .uid = request.caller.uid(),
                               .tree = request.tree,
                               .allow_no_new_privs = request.allow_no_new_privs,
                               .class_name = std::move(class_name).value(),
                               .filter = std::move(program).value(),
                               .io = io,
                               .may = may,
                               .lenient = static_cast<bool>(request.spare)},
                              done);
  }
  // What a thread makes before it is taken in itself is found by looking again.
  for (int round = 0; round < most_rounds; ++round) {
    RosterAnswer found = list_threads(procfs_, scheduler_, {.members = {*tgid}, .descendants = request.tree});
    if (found.threads.empty() && round == 0) return Error(ENOENT, "process " + std::to_string(*tgid) + " has ended");
    std::erase_if(found.threads, [&](const RosterAnswer::Entry& e) { return !may(e.tgid).ok(); });
    Result<std::size_t> taken = Error(ESHUTDOWN, "swapd is stopping");
    engine_.call([&](Engine& e) { taken = e.take_in(found.threads, *class_name); });
    if (!taken) return std::move(taken).error();
    if (*taken == 0) break;
  }
  return Done{};
}

Status DaemonBackend::may_touch(pid_t pid, const bus::Caller& caller) const {
  const auto owner = procfs_.uid(pid);
  if (!owner && owner.error().gone()) return Error(ENOENT, "no process " + std::to_string(pid));
  const bool own = owner && *owner == caller.uid();
  if (caller.may(own ? bus::Right::manage_own : bus::Right::manage_others)) return Done{};
  if (own) return Error(EACCES, "user " + std::to_string(caller.uid()) + " may not have programs managed");
  return Error(EACCES, "process " + std::to_string(pid) + " belongs to another user");
}

Status DaemonBackend::may_leave(pid_t tgid, const std::string& into, const bus::Caller& caller) const {
  std::string from;
  engine_.call([&](Engine& e) {
    e.catch_up();
    const MemberProcess* process = e.members().process(tgid);
    if (process != nullptr && process->managed) from = process->class_name;
  });
  if (from.empty() || from == into || !classes_.limited(from) || caller.may(bus::Right::administer)) return Done{};
  return Error(EACCES, "process " + std::to_string(tgid) + " is in class '" + from +
                           "', which limits it: only root takes it out");
}

// For another process of its user.
Status DaemonBackend::has_room(pid_t pid) const {
  Status room = Done{};
  if (const auto owner = procfs_.uid(pid)) engine_.call([&](Engine& e) { room = e.room_for(*owner, pid); });
  return room;
}

Status DaemonBackend::release(pid_t pid, const bus::Caller& caller) {
  Status done = may_touch(pid, caller);
  if (done) done = may_leave(procfs_.tgid(pid).value_or(pid), "", caller);
  if (done) engine_.call([&](Engine& e) { done = e.release(pid); });
  return refusals_.heard("release", pid, caller, std::move(done));
}

Status DaemonBackend::may_administer(const char* action, const bus::Caller& caller) {
  if (caller.may(bus::Right::administer)) return Done{};
  return refusals_.heard(action, ::getpid(), caller, Error(EACCES, std::string("only root may ") + action + " swapd"));
}

Status DaemonBackend::restart(const bus::Caller& caller) {
  Status may = may_administer("restart", caller);
  return may ? about_.restart() : may;
}

Status DaemonBackend::pause(bool paused, const bus::Caller& caller) {
  if (Status may = may_administer(paused ? "pause" : "resume", caller); !may) return may;
  engine_.call([&](Engine& e) { e.pause(paused); });
  spdlog::info("{} by user {}", paused ? "paused" : "resumed", caller.uid());
  return Done{};
}

Status DaemonBackend::set(pid_t pid, const SchedAttr& base, const bus::Caller& caller) {
  Status done = may_touch(pid, caller);
  if (done) {
    const bool raises = caller.rights().has(bus::Right::raise_priority);
    engine_.call([&](Engine& e) { done = e.set_base(pid, base, raises); });
    if (!done && done.error().code() == EACCES) (void)caller.may(bus::Right::raise_priority);  // that is what it lacks
  }
  return refusals_.heard("set", pid, caller, std::move(done));
}

void DaemonBackend::follow_events(bus::EventDetail detail, std::function<void(const bus::EventView&)> sink) {
  sink_ = std::move(sink);
  engine_.want_notes(detail == bus::EventDetail::all         ? Notes::all
                     : detail == bus::EventDetail::decisions ? Notes::decisions
                                                             : Notes::none);
  if (!sink_) (void)engine_.take_notes();
}

Status DaemonBackend::record(std::function<bool(std::string_view)> sink) {
  replay::Header about{.swapd = about_.version, .boot_id = actuate::read_boot_id()};
  about.time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return recording_.begin(std::move(sink), std::move(about));
}

void DaemonBackend::forward_notes() {
  std::vector<Note> notes = engine_.take_notes();
  recording_.forward();
  for (const Note& note : notes) {
    if (note.journalled) log_donation(note, procfs_);
    if (!sink_) continue;
    bus::EventView event{.time = realtime_of(note.time), .type = std::string(name(note.type))};
    event.tid = note.thread.tid;
    event.pid = note.tgid != 0 ? note.tgid : note.thread.tid;
    event.process = note.process;
    event.comm = procfs_.comm(note.thread.tid).value_or("");
    if (note.has_resource) event.fields["resource"] = text(note.resource);
    switch (note.type) {
      case Note::Type::donation_begun:
      case Note::Type::donation_ended:
      case Note::Type::ineffective:
      case Note::Type::inversion_found:
        event.numbers["requester"] = note.other.tid;
        event.numbers["requester_pid"] = note.other_tgid != 0 ? note.other_tgid : note.other.tid;
        event.fields["policy"] = std::string(swapd::name(note.attr.policy));
        event.numbers["nice"] = note.attr.nice;
        event.numbers["rt_priority"] = note.attr.rt_priority;
        if (note.type == Note::Type::ineffective) event.fields["reason"] = std::string(actuate::name(note.reason));
        break;
      case Note::Type::limit_reached:
        event.fields["limit"] = std::string(note.limit);
        break;
      case Note::Type::woken:
        if (note.other.valid()) event.numbers["by"] = note.other.tid;
        break;
      case Note::Type::spawned:
        event.numbers["parent"] = note.other.tid;
        break;
      default:
        break;
    }
    sink_(event);
  }
}

}  // namespace swapd::daemon
