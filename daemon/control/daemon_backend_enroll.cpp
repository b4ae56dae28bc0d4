// Launches, enrolls and releases processes, for callers that may.
#include <algorithm>
#include <string_view>
#include <utility>

#include "control/daemon_backend.h"
#include "enroll/enrollable.h"
#include "enroll/filter_rules.h"
#include "sys/process/pidfd.h"
#include "sys/process/self_process.h"
#include "sys/seccomp/launcher.h"

namespace swapd::daemon {

namespace {

constexpr int max_enroll_rounds = 16;

// A launcher's words for a program that has a listener of its own; the program's name follows.
constexpr std::string_view without_filter = "none:";

}  // namespace

Result<bus::LaunchAnswer> DaemonBackend::launch(bus::LaunchRequest request) {
  const pid_t pid = request.pid;
  const bus::Caller caller = request.caller;
  Result<bus::LaunchAnswer> answer = begin_launch(std::move(request));
  if (!answer) (void)refusals_.heard("run", pid, caller, answer.error());
  if (answer && about_.by_hand) about_.by_hand(pid);
  return answer;
}

Result<bus::LaunchAnswer> DaemonBackend::begin_launch(bus::LaunchRequest request) {
  if (Status may = may_touch(request.pid, request.caller); !may) return std::move(may).error();
  if (Status room = has_room(request.pid); !room) return std::move(room).error();
  auto class_name = class_of(request.class_name, request.caller);
  if (!class_name) return std::move(class_name).error();
  request.class_name = std::move(class_name).value();
  if (Status may = may_leave(request.pid, request.class_name, request.caller); !may) return std::move(may).error();
  if (request.observe.starts_with(without_filter)) return launch_without_filter(std::move(request));
  if (request.observe != "auto" && request.observe != about_.observer && !request.observe.empty()) {
    if (request.observe != "bpf" && request.observe != "seccomp")
      return Error(EINVAL, "unknown observer '" + request.observe + "': auto, bpf or seccomp");
    return Error(EINVAL, "this swapd observes with " + about_.observer + " (" + about_.observer_reason +
                             "); use --observe auto, or a swapd of its own with --embedded");
  }
  request.shaped = parts_.classes.shaped(request.class_name);
  bool has_listener = false, has_io = false;
  parts_.engine.call([&](Engine& e) {
    has_listener = e.membership().listeners().contains(request.pid);
    has_io = e.membership().listeners().has_io(request.pid);
  });
  if (request.shaped && has_listener && !has_io)
    return Error(EBUSY,
                 "this process runs under a filter without I/O calls, and gets no other: run it outside of "
                 "swapctl run, or there with --class " +
                     request.class_name);
  if (!parts_.engine.needs_listeners() && (!request.shaped || has_io)) {
    if (const auto pid = sys::pid_of_pidfd(request.pidfd.get()); !pid || *pid != request.pid)
      return Error(EINVAL, "the pidfd is not the launcher's own");
    const RosterAnswer found = list_threads(kernel_.procfs, kernel_.scheduler, {.members = {request.pid}});
    Result<std::size_t> taken = Error(ESHUTDOWN, "swapd is stopping");
    parts_.engine.call([&](Engine& e) { taken = e.membership().enroll_threads(found.threads, request.class_name); });
    if (!taken) return std::move(taken).error();
    return bus::LaunchAnswer{.install = false, .program = {}};
  }
  Status again = Error(ENOENT, "");
  if (has_listener)
    parts_.engine.call([&](Engine& e) { again = e.membership().manage_again(request.pid, request.class_name); });
  if (again) return bus::LaunchAnswer{.install = false, .program = {}};
  auto program = filter(request.class_name, request.shaped);
  if (!program) return std::move(program).error();
  if (Status begun = parts_.launches.begin(std::move(request)); !begun) return std::move(begun).error();
  return bus::LaunchAnswer{.install = true, .program = std::move(program).value()};
}

// Into the class only where that has no limits: none would hold for it.
Result<bus::LaunchAnswer> DaemonBackend::launch_without_filter(bus::LaunchRequest request) {
  const bool shaped = parts_.classes.shaped(request.class_name);
  bool has_listener = false;
  parts_.engine.call([&](Engine& e) { has_listener = e.membership().listeners().contains(request.pid); });
  if (has_listener)
    return Error(EBUSY,
                 "this process runs under a filter of swapd's already, so the program's own listener would be "
                 "refused: run it outside of swapctl run");
  const bool managed = !parts_.engine.needs_listeners();
  if (managed) {
    if (const auto pid = sys::pid_of_pidfd(request.pidfd.get()); !pid || *pid != request.pid)
      return Error(EINVAL, "the pidfd is not the launcher's own");
    const RosterAnswer found = list_threads(kernel_.procfs, kernel_.scheduler, {.members = {request.pid}});
    Result<std::size_t> taken = Error(ESHUTDOWN, "swapd is stopping");
    parts_.engine.call([&](Engine& e) {
      taken = e.membership().enroll_threads(found.threads, shaped ? "default" : request.class_name);
    });
    if (!taken) return std::move(taken).error();
  }
  if (about_.own_listeners != nullptr && (shaped || !managed))
    about_.own_listeners->runs_without(request.pid, request.observe.substr(without_filter.size()), request.class_name,
                                       managed);
  return bus::LaunchAnswer{.install = false, .program = {}};
}

// A class with limits takes it only where its filter has the calls for them: none would hold.
Result<std::string> DaemonBackend::admit(const OciContainer& container) {
  const bus::Caller runtime = bus::Caller::root();
  if (Status may = may_touch(container.pid, runtime); !may) return std::move(may).error();
  if (Status room = has_room(container.pid); !room) return std::move(room).error();
  auto class_name = class_of(container.class_name, runtime);
  if (!class_name) return std::move(class_name).error();
  if (parts_.engine.needs_listeners() && !container.observe)
    return Error(
        EINVAL,
        "its profile has none of the calls that the seccomp observer sees by: make it with `swapd --oci-profile "
        "--observe seccomp`");
  if (!parts_.classes.shaped(*class_name) || container.limits) return class_name;
  if (about_.own_listeners != nullptr)
    about_.own_listeners->runs_without(container.pid, container.id, *class_name, true);
  return std::string("default");
}

Result<std::string> DaemonBackend::class_of(const std::string& wanted, const bus::Caller& caller) const {
  const std::string name = wanted.empty() ? "default" : wanted;
  if (!parts_.classes.exists(name))
    return Error(ENOENT, "no class '" + name + "': the policy has no [class." + name +
                             "], and `swapctl class create` has made none");
  if (parts_.classes.is_open(name) || caller.may(bus::Right::administer)) return name;
  return Error(EACCES, "class '" + name +
                           "' is closed ('open = false' in the policy): only root and the policy's rules put "
                           "programs into it");
}

// With bpf calls are trapped only to be delayed.
Result<std::vector<sock_filter>> DaemonBackend::filter(const std::string& class_name, bool io,
                                                       bool runs_already) const {
  std::optional<observe::IoTraps> traps;
  if (io)
    traps = {.rings = runs_already || parts_.classes.may_io_uring(class_name),
             .entries = parts_.classes.counts_operations(class_name)};
  return sys::build_filter(filter_rules(parts_.policy, traps, parts_.engine.needs_listeners()));
}

void DaemonBackend::enroll(const bus::EnrollRequest& request, std::function<void(const Status&)> done) {
  Status begun = refusals_.heard("enroll", request.pid, request.caller, begin_enrolling(request, done));
  if (!begun || !attaching_) done(begun);
}

// If a filter must be installed, that has only begun.
Status DaemonBackend::begin_enrolling(const bus::EnrollRequest& request,
                                      const std::function<void(const Status&)>& done) {
  attaching_ = false;
  auto class_name = class_of(request.class_name, request.caller);
  if (!class_name) return std::move(class_name).error();
  const auto tgid = kernel_.procfs.tgid(request.pid);
  if (!tgid) return Error(ENOENT, "no process " + std::to_string(request.pid));
  const auto may = [this, caller = request.caller, first = *tgid, spare = request.spare,
                    into = *class_name](pid_t pid) {
    if (spare && pid != first && spare(pid)) return Status(Error(EALREADY, "left out"));
    if (Status touch = may_touch(pid, caller); !touch) return touch;
    if (Status one = may_enroll(kernel_.procfs, pid, parts_.policy.observe.never); !one) return one;
    if (Status leave = may_leave(pid, into, caller); !leave) return leave;
    Status room = has_room(pid);
    if (room && !spare && about_.by_hand) about_.by_hand(pid);  // and not by a rule
    return room;
  };
  if (Status allowed = may(*tgid); !allowed) return allowed;
  const bool io = parts_.classes.shaped(*class_name);
  bool has_io = false;
  parts_.engine.call([&](Engine& e) { has_io = e.membership().listeners().has_io(*tgid); });
  attaching_ = parts_.engine.needs_listeners() || (io && !has_io);
  if (attaching_) {
    auto program = filter(*class_name, io, true);  // it may have rings
    if (!program) return std::move(program).error();
    return parts_.attachments.begin({.pid = *tgid,
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
  // Children of a thread that are born before the thread is enrolled are found by looking again.
  for (int round = 0; round < max_enroll_rounds; ++round) {
    RosterAnswer found =
        list_threads(kernel_.procfs, kernel_.scheduler, {.members = {*tgid}, .descendants = request.tree});
    if (found.threads.empty() && round == 0) return Error(ENOENT, "process " + std::to_string(*tgid) + " has ended");
    std::erase_if(found.threads, [&](const RosterAnswer::Entry& e) { return !may(e.tgid).ok(); });
    Result<std::size_t> taken = Error(ESHUTDOWN, "swapd is stopping");
    parts_.engine.call([&](Engine& e) { taken = e.membership().enroll_threads(found.threads, *class_name); });
    if (!taken) return std::move(taken).error();
    if (*taken == 0) break;
  }
  return Done{};
}

Status DaemonBackend::may_touch(pid_t pid, const bus::Caller& caller) const {
  const auto owner = kernel_.procfs.uid(pid);
  if (!owner && owner.error().gone()) return Error(ENOENT, "no process " + std::to_string(pid));
  const bool own = owner && *owner == caller.uid();
  if (caller.may(own ? bus::Right::manage_own : bus::Right::manage_others)) return Done{};
  if (own) return Error(EACCES, "user " + std::to_string(caller.uid()) + " may not have programs managed");
  return Error(EACCES, "process " + std::to_string(pid) + " belongs to another user");
}

Status DaemonBackend::may_leave(pid_t tgid, const std::string& into, const bus::Caller& caller) const {
  std::string from;
  parts_.engine.call([&](Engine& e) {
    e.catch_up();
    const model::ManagedProcess* process = e.members().process(tgid);
    if (process != nullptr && process->managed) from = process->class_name;
  });
  if (from.empty() || from == into || !parts_.classes.limited(from) || caller.may(bus::Right::set_limits))
    return Done{};
  return Error(EACCES, "process " + std::to_string(tgid) + " is in class '" + from +
                           "', which limits it: only root takes it out");
}

// For another process of its user.
Status DaemonBackend::has_room(pid_t pid) const {
  Status room = Done{};
  if (const auto owner = kernel_.procfs.uid(pid))
    parts_.engine.call([&](Engine& e) { room = e.membership().quota().room_for(*owner, pid); });
  return room;
}

Status DaemonBackend::release(pid_t pid, const bus::Caller& caller) {
  Status done = may_touch(pid, caller);
  if (done) done = may_leave(kernel_.procfs.tgid(pid).value_or(pid), "", caller);
  if (done && about_.by_hand) about_.by_hand(kernel_.procfs.tgid(pid).value_or(pid));
  if (done) parts_.engine.call([&](Engine& e) { done = e.membership().release(pid); });
  return refusals_.heard("release", pid, caller, std::move(done));
}

Status DaemonBackend::thaw(pid_t pid, const bus::Caller& caller) {
  Status done = may_touch(pid, caller);
  const pid_t tgid = kernel_.procfs.tgid(pid).value_or(pid);
  if (done)
    parts_.engine.call([&](Engine& e) {
      const std::vector<decide::MemoryDecider::AwayView> away = e.counters().memory.away;
      if (std::ranges::find(away, tgid, &decide::MemoryDecider::AwayView::tgid) == away.end())
        done = Error(ENOENT, "process " + std::to_string(tgid) + " is not away");
      else
        e.tell(decide::MemoryEvent{kernel_.clock.now(), tgid, decide::MemoryEvent::What::asked});
    });
  return refusals_.heard("thaw", pid, caller, std::move(done));
}

}  // namespace swapd::daemon
