#include "enroll/auto_enroller.h"

#include <linux/capability.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace swapd::daemon {
namespace {

constexpr std::size_t batch = 64;  // then others of the loop have their turn
constexpr std::size_t max_judged = 10'000;
constexpr std::size_t max_changed = 10'000;
// A program that is started, moved and renamed is looked at once, and one that renames itself all the time ten times a
// second.
constexpr std::chrono::microseconds settles{100'000};

// swapctl is about to be another program, of which it tells us itself.
constexpr std::string_view swapctl = "swapctl";

}  // namespace

AutoEnroller::AutoEnroller(bus::Backend& backend, const sys::Procfs& procfs, std::vector<policy::NamedRule> rules,
                           Options options)
    : backend_(backend), procfs_(procfs), matcher_(procfs, std::move(rules)), options_(std::move(options)) {
  counts_.rules = matcher_.rules();
}

AutoEnroller::~AutoEnroller() {
  *alive_ = false;
  sources_.clear();
  look_through_again_.reset();
  look_at_settled_.reset();
}

void AutoEnroller::begin(sd_event* loop, std::vector<std::unique_ptr<sys::ExecEvents>> events) {
  if (matcher_.rules() == 0) return;
  look_through_again_.emplace(loop, [this] { look_through(); });
  look_at_settled_.emplace(loop, [this] { look_at_changed(); });
  for (auto& from : events) {
    const std::size_t place = sources_.size();
    auto made =
        std::unique_ptr<Source>(new Source{std::move(from), {loop, [this, place] { read_events(*sources_[place]); }}});
    Source& source = *sources_.emplace_back(std::move(made));
    if (const Status watched = source.readable.watch(source.events->fd()); !watched)
      stop_matching(source, watched.error());
  }
  look_through();
}

void AutoEnroller::read_events(Source& from) {
  const auto read = from.events->read(batch);
  if (!read) return stop_matching(from, read.error());
  changed_.insert(read->changed.begin(), read->changed.end());
  for (const sys::ExecEvent& event : read->started) {
    changed_.erase(event.pid);
    look_at(event);
  }
  if (changed_.size() > max_changed) {
    changed_.clear();
    look_through_soon();
  }
  if (!changed_.empty()) look_at_changed_soon();
  if (read->lost) look_through_soon();
}

void AutoEnroller::stop_matching(Source& from, const Error& error) {
  spdlog::warn("{}; programs that start or change are not matched by [match.NAME] any more", error.text());
  from.readable.stop();
}

void AutoEnroller::look_at_changed_soon() {
  if (look_at_settled_->running()) return;
  if (!look_at_settled_->start(settles)) look_at_changed();
}

void AutoEnroller::look_at_changed() {
  for (const pid_t pid : std::exchange(changed_, {})) {
    const auto stat = procfs_.stat(pid);
    if (!stat || !stat->alive() || stat->kernel) continue;
    if (options_.changed) options_.changed(pid);
    const policy::Program program = matcher_.program_of(pid, {});
    if (program.comm == swapctl) continue;
    consider({.pid = pid, .start_time = stat->start_time, .rule = nullptr, .cmdline = {}}, program);
  }
}

void AutoEnroller::look_through_soon() {
  if (look_through_again_->running()) return;
  const Duration pause = backoff_.next_pause(std::chrono::steady_clock::now());
  if (!look_through_again_->start(std::chrono::duration_cast<std::chrono::microseconds>(pause))) look_through();
}

void AutoEnroller::look_through() {
  for (const pid_t pid : procfs_.processes()) {
    const auto stat = procfs_.stat(pid);
    if (!stat || !stat->alive() || stat->kernel) continue;
    if (const auto known = judged_.find(pid); known != judged_.end() && known->second == stat->start_time) continue;
    consider({.pid = pid, .start_time = stat->start_time, .rule = nullptr, .cmdline = {}},
             matcher_.program_of(pid, {}));
  }
  backoff_.looked(std::chrono::steady_clock::now());
}

void AutoEnroller::look_at(const sys::ExecEvent& event) {
  ++counts_.programs;
  if (event.comm == swapctl) return;
  std::optional<std::string> cmdline;
  if (!event.cmdline.empty()) cmdline = event.cmdline;
  consider({.pid = event.pid, .start_time = event.start_time, .rule = nullptr, .cmdline = std::move(cmdline)},
           matcher_.program_of(event));
}

void AutoEnroller::consider(WantedProgram wanted, const policy::Program& program) {
  wanted.rule = matcher_.rule_for(program);
  if (wanted.rule == nullptr || stays(wanted)) return;
  ++counts_.matched;
  if (!wanted.rule->rule.manage || options_.dry_run) return leave_alone(wanted);
  if (!queue_.push(std::move(wanted))) return look_through_soon();
  take_next();
}

// Managed or released already, and not by another rule alone.
bool AutoEnroller::stays(const WantedProgram& wanted) {
  if (!options_.known(wanted.pid, wanted.start_time)) return false;
  const policy::NamedRule* by = taken_.rule_of(wanted.pid, wanted.start_time);
  return by == nullptr || by == wanted.rule || !wanted.rule->rule.manage;
}

void AutoEnroller::take_next() {
  queue_.drain([this](const WantedProgram& next) {
    if (fits_still(next) && !stays(next)) take(next);
  });
}

// It may be another program by now, or another process.
bool AutoEnroller::fits_still(const WantedProgram& wanted) {
  const policy::NamedRule* now = matcher_.rule_for(matcher_.program_of(wanted.pid, wanted.cmdline));
  const auto stat = procfs_.stat(wanted.pid);
  return now == wanted.rule && stat && stat->alive() && stat->start_time == wanted.start_time;
}

bool AutoEnroller::may_have_a_filter(pid_t pid) const {
  const auto no_new_privs = procfs_.status_numbers(pid, "NoNewPrivs");
  if (no_new_privs && !no_new_privs->empty() && no_new_privs->front() == 1) return true;
  const auto capabilities = procfs_.capabilities(pid);
  return capabilities && (*capabilities >> CAP_SYS_ADMIN & 1) != 0;
}

bool AutoEnroller::is_left_alone(pid_t pid) {
  const auto stat = procfs_.stat(pid);
  if (!stat || options_.known(pid, stat->start_time)) return true;
  const policy::NamedRule* rule = matcher_.rule_for(matcher_.program_of(pid, {}));
  return rule != nullptr && !rule->rule.manage;
}

void AutoEnroller::take(const WantedProgram& wanted) {
  if (options_.installs_filters && !may_have_a_filter(wanted.pid))
    return refused(wanted, Error(EACCES, "process " + std::to_string(wanted.pid) +
                                             " has neither CAP_SYS_ADMIN nor no_new_privs, without which the seccomp "
                                             "observer cannot see it; the bpf observer can"));
  queue_.begin();
  const auto done = [this, wanted, asked = options_.settings.asked(wanted.rule->rule, wanted.pid),
                     alive = alive_](const Status& enrolled) {
    if (*alive) taken(wanted, asked, enrolled);
  };
  // With what it has started until then; what another rule had taken in, alone.
  backend_.enroll({.pid = wanted.pid,
                   .caller = bus::Caller::root(),
                   .tree = !options_.known(wanted.pid, wanted.start_time),
                   .class_name = wanted.rule->rule.class_name,
                   .spare = [this](pid_t pid) { return is_left_alone(pid); }},
                  done);
}

void AutoEnroller::taken(const WantedProgram& wanted, const std::optional<AskedPriority>& asked, Status enrolled) {
  queue_.end();
  const bool in = enrolled.ok();
  if (in) ++counts_.managed;
  if (enrolled && fits_still(wanted)) {
    enrolled = options_.settings.give(wanted.rule->rule, wanted.pid);
    if (enrolled && asked) enrolled = backend_.set(wanted.pid, *asked, bus::Caller::root());
  }
  if (in) taken_.add(wanted.pid, wanted.start_time, wanted.rule);
  if (!enrolled && enrolled.error().code() == EAGAIN)
    look_through_soon();
  else if (!enrolled)
    refused(wanted, enrolled.error());
  take_next();
}

// As long as it lives, whoever looks through all.
void AutoEnroller::leave_alone(const WantedProgram& wanted) {
  if (judged_.size() > max_judged) judged_.clear();
  judged_[wanted.pid] = wanted.start_time;
}

// Said once for each rule and sort of error. What swapd never supervises, and what has ended, is no news.
void AutoEnroller::refused(const WantedProgram& wanted, const Error& error) {
  leave_alone(wanted);
  if (error.gone() || error.code() == EINVAL || !said_.emplace(wanted.rule->name, error.code()).second) return;
  spdlog::warn("[match.{}]: {}", wanted.rule->name, error.code() == EACCES ? error.context() : error.text());
}

sys::Facts followed_facts(const std::vector<policy::NamedRule>& rules) {
  sys::Facts facts;
  for (const auto& [name, rule] : rules) {
    facts.comm = facts.comm || !rule.comm.empty();
    facts.uid = facts.uid || !rule.user.empty();
    facts.cgroup = facts.cgroup || !rule.cgroup.empty() || !rule.unit.empty() || !rule.container.empty();
  }
  return facts;
}

std::vector<std::unique_ptr<sys::ExecEvents>> open_exec_events(const sys::Facts& changes,
                                                               std::vector<MissingPiece>& missing) {
  std::vector<std::unique_ptr<sys::ExecEvents>> sources;
  auto opened = sys::exec_events_from_bpf(changes);
  sys::BpfExecEvents bpf;
  if (opened)
    bpf = std::move(opened).value();
  else
    for (auto* piece : {&bpf.starts, &bpf.comm, &bpf.cgroup}) piece->refused = opened.error().text();
  if (bpf.events) sources.push_back(std::move(bpf.events));

  // What is left for the connector.
  const sys::Facts rest{.comm = changes.comm && !bpf.comm.told, .uid = changes.uid};
  bool connected = true;
  std::string refused;
  if (!bpf.starts.told || rest.any()) {
    auto connector = bpf.starts.told ? sys::changes_from_connector(rest) : sys::exec_events_from_connector(rest);
    connected = connector.ok();
    if (connected)
      sources.push_back(std::move(connector).value());
    else
      refused = connector.error().text();
  }
  const auto miss = [&](const char* what, const std::string& why, const char* instead, const char* unconnected) {
    missing.push_back({what, connected ? why : why + "; " + refused, connected ? instead : unconnected});
  };
  if (!bpf.starts.told)
    miss("each program that starts (execs.on_program)", bpf.starts.refused,
         "the process connector tells of them; a program that ends at once may be missed by [match.NAME]",
         "[match.NAME] finds only the programs that run when swapd starts");
  if (rest.comm)
    miss("each process that is renamed (execs.on_rename)", bpf.comm.refused, "the process connector tells of them",
         "a program that is renamed after its start is missed by [match.NAME]");
  if (changes.cgroup && !bpf.cgroup.told)
    missing.push_back({"each process that is moved among cgroups (execs.on_move)", bpf.cgroup.refused,
                       "a program that is moved to another cgroup after its start is missed by [match.NAME]"});
  if (changes.uid && !connected)
    missing.push_back({"each process that changes its user", refused,
                       "a program that changes its user after its start is missed by [match.NAME]"});
  return sources;
}

}  // namespace swapd::daemon
