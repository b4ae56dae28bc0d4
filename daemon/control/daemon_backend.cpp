#include "control/daemon_backend.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "actuate/recovery.h"
#include "base/words.h"
#include "control/views.h"
#include "log/log.h"
#include "sys/process/self_process.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {

namespace {

double realtime_of(Time time) {
  const auto now = std::chrono::system_clock::now() - (std::chrono::steady_clock::now() - time);
  return std::chrono::duration<double>(now.time_since_epoch()).count();
}

constexpr auto note_words = words<Note::Type>({{"accessed", Note::Type::accessed},
                                               {"released", Note::Type::released},
                                               {"released", Note::Type::unenrolled},
                                               {"blocked", Note::Type::blocked},
                                               {"woken", Note::Type::woken},
                                               {"spawned", Note::Type::spawned},
                                               {"execed", Note::Type::execed},
                                               {"exited", Note::Type::exited},
                                               {"donation-begun", Note::Type::donation_begun},
                                               {"donation-ended", Note::Type::donation_ended},
                                               {"ineffective", Note::Type::ineffective},
                                               {"inversion-found", Note::Type::inversion_found},
                                               {"limit-reached", Note::Type::limit_reached},
                                               {"enrolled", Note::Type::enrolled}});

constexpr auto method_words = words<observe::Costs::Method>({{"poll", observe::Costs::Method::poll},
                                                             {"perf", observe::Costs::Method::perf},
                                                             {"bpf", observe::Costs::Method::bpf}});

bus::CpuView cpu_view(const CpuTimes& cpu, Duration guard) {
  const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  return {.engine_s = seconds(cpu.engine),
          .worker_s = seconds(cpu.worker),
          .receivers_s = seconds(cpu.receivers),
          .jobs_s = seconds(cpu.jobs),
          .memory_s = seconds(cpu.memory),
          .control_s = seconds(cpu.control),
          .total_s = seconds(cpu.total),
          .guard_s = seconds(guard)};
}

}  // namespace

DaemonBackend::DaemonBackend(const Kernel& kernel, const Parts& parts, About about)
    : kernel_(kernel), parts_(parts), about_(std::move(about)) {
  parts_.engine.feed().want_journal(logs_entries());
}

Snapshot DaemonBackend::snapshot() {
  Snapshot out;
  parts_.engine.call([&](Engine& e) { out = e.snapshot(); });
  out.delayed = parts_.shaper.held_threads();
  return out;
}

static bus::MemoryView memory_view(const MemoryState& memory, const Kernel& kernel) {
  bus::MemoryView out{.on = memory.on, .groups = {}, .away = {}, .swapped_out_total = memory.swapped_out};
  for (const decide::MemoryDecider::GroupView& one : memory.groups) {
    const bool is_stuck = one.stuck != decide::MemoryDecider::Why::none;
    out.groups.push_back({.group = one.group,
                          .thrashes = one.thrashes,
                          .lost = one.lost,
                          .stuck = is_stuck ? std::string(decide::stuck_words.of(one.stuck)) : std::string()});
  }
  for (const decide::MemoryDecider::AwayView& one : memory.away) {
    const auto comm = kernel.procfs.comm(one.tgid);
    const auto seen = std::ranges::find(memory.processes, one.tgid, &AwayProcesses::View::tgid);
    const bool known = seen != memory.processes.end();
    out.away.push_back({.pid = one.tgid,
                        .comm = comm ? *comm : "",
                        .state = std::string(phase_words.of(known ? seen->phase : AwayProcesses::Phase::enters)),
                        .group = one.group,
                        .since_s = std::chrono::duration<double>(kernel.clock.now() - one.since).count(),
                        .swapped_out = known ? seen->put_out : 0});
  }
  return out;
}

bus::StatusView DaemonBackend::status() {
  Counters c;
  parts_.engine.call([&](Engine& e) { c = e.counters(); });
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
  if (!c.trouble.empty()) out.warnings.push_back(c.trouble);
  out.missing = about_.missing;
  std::ranges::move(parts_.shaper.missing(), std::back_inserter(out.missing));
  std::ranges::move(parts_.resolver.missing(), std::back_inserter(out.missing));
  if (const int refused = sys::sync_wake_up_refused(); refused != 0)
    out.missing.push_back({"handing the CPU over at a trapped call (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)",
                           Error(refused, "the kernel").text(), "each trapped call takes some microseconds longer"});
  if (about_.guard_note)
    if (std::string note = about_.guard_note(); !note.empty()) out.warnings.push_back(std::move(note));
  if (about_.own_listeners != nullptr)
    std::ranges::copy(about_.own_listeners->lines(), std::back_inserter(out.warnings));
  if (about_.surroundings) {
    SchedulingConflicts around = about_.surroundings();
    out.rivals = std::move(around.rivals);
    std::ranges::move(around.settings, std::back_inserter(out.warnings));
  }
  out.watch_method = method_words.of(c.costs.method);
  out.watched_threads = c.costs.watched;
  out.unheard_threads = c.costs.unheard;
  out.watch_wakeups_total = c.costs.wakeups;
  out.watch_polls_total = c.costs.polls;
  out.cpu = cpu_view(c.cpu, about_.guard_pid ? sys::process_cpu_time(about_.guard_pid()) : Duration::zero());
  out.budget = {.share = c.budget.share,
                .share_now = c.budget.share_now,
                .used = c.budget.used,
                .wait_ms = std::chrono::duration<double, std::milli>(c.budget.wait).count(),
                .patience_ms = std::chrono::duration<double, std::milli>(c.budget.patience).count()};
  for (const decide::CoschedulingDecider::JobView& job : c.jobs) {
    const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
    const auto comm = kernel_.procfs.comm(static_cast<pid_t>(job.id));
    bus::JobView view{.id = job.id,
                      .state = std::string(decide::job_state_words.of(job.state)),
                      .comm = comm ? *comm : "",
                      .members = {},
                      .waste = job.waste,
                      .due = job.due,
                      .slots = job.slots,
                      .refused_busy = job.refused.busy,
                      .refused_debt = job.refused.debt,
                      .used_s = seconds(job.used),
                      .entitled_s = seconds(job.entitled)};
    for (const auto& one : job.members) view.members.push_back({one.thread.tid, one.share, one.cpu, one.waiting});
    out.jobs.push_back(std::move(view));
  }
  out.memory = memory_view(c.memory, kernel_);
  out.resources = c.model.resources;
  out.requesters = c.model.requesters;
  out.providers = c.model.providers;
  out.over_quota = c.over_quota;
  out.paused = c.paused;
  if (about_.newcomers) {
    const AutoEnroller::Counts counts = about_.newcomers();
    out.match_rules = counts.rules;
    out.programs = counts.programs;
    out.matched = counts.matched;
    out.managed_by_policy = counts.managed;
  }
  out.delayed_calls = parts_.shaper.delayed_now();
  out.delayed_calls_total = parts_.shaper.delayed_total();
  out.log_drops = about_.log_drops ? about_.log_drops() : 0;
  out.pid = ::getpid();
  return out;
}

bus::BriefView DaemonBackend::brief() {
  Counters c;
  parts_.engine.call([&](Engine& e) { c = e.counters(); });
  bus::BriefView out{.observer = about_.observer,
                     .paused = c.paused,
                     .managed_threads = c.managed_threads,
                     .managed_processes = c.managed_processes,
                     .donations_active = c.donations_active,
                     .memory_short = std::ranges::any_of(c.memory.groups, &decide::MemoryDecider::GroupView::thrashes),
                     .away = {}};
  for (const decide::MemoryDecider::AwayView& one : c.memory.away) out.away.push_back(one.tgid);
  return out;
}

std::vector<bus::ThreadView> DaemonBackend::threads() {
  Views views(snapshot(), kernel_.procfs, parts_.resolver);
  return views.threads();
}

Result<std::vector<bus::ThreadView>> DaemonBackend::why(pid_t pid) {
  Views views(snapshot(), kernel_.procfs, parts_.resolver);
  const auto chosen = views.select(pid);
  if (chosen.empty()) {
    if (!kernel_.procfs.thread_id(pid))
      return Error(ENOENT, "no process " + std::to_string(pid) + "; `swapctl ps` lists the managed ones");
    return Error(ENOENT, "process " + std::to_string(pid) + " is not managed; start it with `swapctl run`");
  }
  Counters counters;
  parts_.engine.call([&](Engine& e) { counters = e.counters(); });
  const std::vector<bus::MemoryView::Away> away = memory_view(counters.memory, kernel_).away;
  std::vector<bus::ThreadView> out;
  for (const SnapshotThread* thread : chosen) {
    bus::ThreadView view = views.thread(*thread, 32);
    if (const auto found = std::ranges::find(away, view.pid, &bus::MemoryView::Away::pid); found != away.end())
      view.away = *found;
    const bool waits = sleeps(view.state) || view.away || (view.job && view.job->waiting > 0);
    if (waits || chosen.size() == 1) out.push_back(std::move(view));
  }
  return out;
}

bus::WorldView DaemonBackend::world() {
  Views views(snapshot(), kernel_.procfs, parts_.resolver);
  return views.world();
}

Result<pid_t> DaemonBackend::pid_of(int pidfd) const {
  Result<int> pid = sys::pid_of_pidfd(pidfd);
  if (pid) return *pid;
  return Error(pid.error().code() == ESRCH ? ESRCH : EINVAL, "the descriptor is not that of a process that runs");
}

bus::GraphView DaemonBackend::graph() {
  Views views(snapshot(), kernel_.procfs, parts_.resolver);
  return views.graph();
}

std::vector<bus::SettingView> DaemonBackend::policy() {
  std::vector<bus::SettingView> out;
  for (const policy::Setting& s : about_.settings) out.push_back({s.table, s.key, s.value, s.where});
  return out;
}

Status DaemonBackend::create_class(const std::string& name, const std::vector<bus::LimitChange>& changes,
                                   const bus::Caller& caller) {
  Status may = may_set_limits("make", caller);
  return may ? parts_.classes.create(name, changes) : may;
}

Status DaemonBackend::set_class(const std::string& name, const std::vector<bus::LimitChange>& changes,
                                const bus::Caller& caller) {
  Status may = may_set_limits("change", caller);
  return may ? parts_.classes.set(name, changes) : may;
}

// Its members go on in "default".
Status DaemonBackend::remove_class(const std::string& name, const bus::Caller& caller) {
  if (Status may = may_set_limits("remove", caller); !may) return may;
  if (Status removed = parts_.classes.remove(name); !removed) return removed;
  parts_.engine.call([&](Engine& e) { e.membership().move_class(name, "default"); });
  return Done{};
}

Status DaemonBackend::may_administer(const char* action, const bus::Caller& caller) {
  if (caller.may(bus::Right::administer)) return Done{};
  return refusals_.heard(action, ::getpid(), caller, Error(EACCES, std::string("only root may ") + action + " swapd"));
}

Status DaemonBackend::may_set_limits(const char* action, const bus::Caller& caller) {
  if (caller.may(bus::Right::set_limits)) return Done{};
  return refusals_.heard(action, ::getpid(), caller,
                         Error(EACCES, std::string("only root may ") + action + " classes of swapd"));
}

Status DaemonBackend::restart(const bus::Caller& caller) {
  Status may = may_administer("restart", caller);
  return may ? about_.restart() : may;
}

Status DaemonBackend::pause(bool paused, const bus::Caller& caller) {
  if (Status may = may_administer(paused ? "pause" : "resume", caller); !may) return may;
  parts_.engine.call([&](Engine& e) { e.pause(paused); });
  spdlog::info("{} by user {}", paused ? "paused" : "resumed", caller.uid());
  return Done{};
}

Status DaemonBackend::set(pid_t pid, const AskedPriority& base, const bus::Caller& caller) {
  Status done = may_touch(pid, caller);
  if (done && about_.by_hand) about_.by_hand(pid);
  if (done) {
    const bool raises = caller.rights().has(bus::Right::raise_priority);
    parts_.engine.call([&](Engine& e) { done = e.membership().set_base(pid, base, raises); });
    if (!done && done.error().code() == EACCES) (void)caller.may(bus::Right::raise_priority);  // that is what it lacks
  }
  return refusals_.heard("set", pid, caller, std::move(done));
}

void DaemonBackend::follow_events(bus::EventDetail detail, std::function<void(const bus::EventView&)> sink) {
  sink_ = std::move(sink);
  parts_.engine.feed().want(detail == bus::EventDetail::all         ? Notes::all
                            : detail == bus::EventDetail::decisions ? Notes::decisions
                                                                    : Notes::none);
  if (!sink_) (void)parts_.engine.feed().take();
}

Status DaemonBackend::record(std::function<bool(std::string_view)> sink) {
  replay::Header about{.swapd = about_.version, .boot_id = actuate::read_boot_id()};
  about.time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return recording_.begin(std::move(sink), std::move(about));
}

void DaemonBackend::forward_notes() {
  std::vector<Note> notes = parts_.engine.feed().take();
  recording_.forward();
  for (const Note& note : notes) {
    if (note.journalled) log_donation(note, kernel_.procfs);
    if (!sink_) continue;
    bus::EventView event{.time = realtime_of(note.time), .type = std::string(note_words.of(note.type))};
    event.tid = note.thread.tid;
    event.pid = note.tgid != 0 ? note.tgid : note.thread.tid;
    event.process = note.process;
    event.comm = kernel_.procfs.comm(note.thread.tid).value_or("");
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
        if (note.limited != actuate::Ineffective::none)
          event.fields["limited"] = std::string(actuate::name(note.limited));
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
