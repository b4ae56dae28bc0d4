#include "harness/team.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace swapd::bench {

SchedAttr by_hand(const SchedAttr& attr) { return lent_by(attr, LendingRules{.rt_ceiling = 99}); }

std::vector<std::string> priority_words(const SchedAttr& attr) {
  if (attr.realtime()) return {"--fifo", std::to_string(attr.rt_priority)};
  if (attr.nice != 0) return {"--nice", std::to_string(attr.nice)};
  return {};
}

Result<std::unique_ptr<Team>> Team::make(const Context& context, const Setup& setup, const Daemon* daemon) {
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  std::unique_ptr<Team> team(new Team(context, setup, std::move(*dir)));
  auto shared = SharedMemory::create();
  if (!shared) return shared.error();
  team->shared_ = std::move(*shared);
  int gate[2];
  if (::pipe2(gate, O_CLOEXEC) != 0) return errno_error("pipe");
  team->gate_read_.reset(gate[0]);
  team->gate_write_.reset(gate[1]);
  team->daemon_ = daemon;
  if (setup.under == "swapd" && daemon == nullptr) {
    Options options = context.options;
    if (!setup.history.empty()) options.history = setup.history;
    auto started = Daemon::start(options, team->dir());
    if (!started) return started.error();
    team->own_daemon_ = std::make_unique<Daemon>(std::move(*started));
    team->daemon_ = team->own_daemon_.get();
  }
  return team;
}

SchedAttr Team::own_attr(const RoleSpec& spec) const {
  if (spec.important) return context_.options.client;
  if (by_hand_too(spec)) return by_hand(context_.options.client);
  return {.nice = static_cast<std::int8_t>(spec.role.role == "server" ? context_.options.server_nice : 0)};
}

Status Team::add(const RoleSpec& spec) {
  const Options& options = context_.options;
  auto channel = make_channel();
  if (!channel) return channel.error();
  RoleOptions role = spec.role;
  role.workload = options.workload;
  role.control_fd = channel->role.get();
  role.gate_fd = gate_read_.get();
  role.shared_fd = shared_.fd();
  role.work_ms = setup_.work_ms;
  role.rate = context_.work.sorts_per_ms();
  role.iterations = setup_.iterations;
  role.split = options.split;

  Spawn spawn;
  spawn.inherit = role.fds;
  spawn.inherit.insert(spawn.inherit.end(), {role.control_fd, role.gate_fd, role.shared_fd});
  spawn.cpus = context_.cpus;
  spawn.own_session = options.split;
  const bool hand = by_hand_too(spec);
  SchedAttr attr = own_attr(spec);
  if (hand) {
    role.child_attr = text(by_hand(options.client));
    role.child_by_hand = true;
  } else if (options.server_nice != 0) {
    role.child_attr = text(SchedAttr{.nice = static_cast<std::int8_t>(options.server_nice)});
  }
  // A nice value means nothing across autogroups: an important client in a session of its own has its group's nice set
  // too.
  if (options.split && !attr.realtime() && attr.nice != 0 && (spec.important || hand)) spawn.autogroup_nice = attr.nice;
  if (daemon_ != nullptr && !spec.outside) {
    spawn.argv = {options.swapctl, "--socket", daemon_->socket(), "run", "--filter"};
    for (std::string& word : priority_words(attr)) spawn.argv.push_back(std::move(word));
    if (!spec.class_name.empty()) spawn.argv.insert(spawn.argv.end(), {"--class", spec.class_name});
    spawn.argv.emplace_back("--");
  } else {
    attr.reset_on_fork = false;
    spawn.attr = attr;
  }
  spawn.argv.insert(spawn.argv.end(), spec.prefix.begin(), spec.prefix.end());
  spawn.argv.push_back(context_.self);
  for (std::string& word : role_arguments(role)) spawn.argv.push_back(std::move(word));
  auto child = Child::start(spawn);
  if (!child) return child.error();
  members_.push_back({std::move(*child), std::move(channel->harness), role.role});
  return Done{};
}

std::chrono::seconds Team::limit() const {
  // Others may be at work on the machine too; and each step of nice is worth a quarter (sched(7)).
  const double share = 4.0 * (setup_.hogs + 2) * std::pow(1.25, std::max(0, context_.options.server_nice));
  return std::chrono::seconds(
      120 + std::llround(std::max(setup_.work_ms, setup_.demand_ms) / 1e3 * setup_.iterations * share * 2));
}

Error Team::failure_of(Member& member) const {
  const auto status = member.child.wait(std::chrono::seconds(2));
  return Error(ECHILD, member.name + " ended early (" + (status ? wait_text(*status) : "still there") + ")");
}

Result<std::string> Team::line_of(std::size_t index, std::chrono::milliseconds at_most) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (members_[index].lines.empty()) {
    std::vector<pollfd> wanted;
    for (const Member& member : members_) wanted.push_back({member.control.get(), POLLIN, 0});
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return Error(ETIMEDOUT, "waiting for " + members_[index].name);
    // In slices: an interrupt that comes just before the poll does not end it.
    if (interrupted()) return Error(EINTR, "waiting for the workload");
    if (::poll(wanted.data(), wanted.size(), static_cast<int>(std::min<decltype(left)>(left, 100))) < 0)
      return errno_error("waiting for the workload");
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].revents == 0) continue;
      auto line = receive_line(wanted[i].fd);
      if (!line) return failure_of(members_[i]);
      if (line->starts_with("failed")) return Error(0, members_[i].name + " " + *line);
      members_[i].lines.push_back(std::move(*line));
    }
  }
  std::string line = std::move(members_[index].lines.front());
  members_[index].lines.pop_front();
  return line;
}

Result<double> Team::run_batch() {
  if (const auto told = send_line(control_of(0), "batch"); !told) return told.error();
  const auto answer = line_of(0, std::chrono::seconds(60));
  if (!answer) return answer.error();
  return std::stod(*answer);
}

Status Team::await_ready() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].ready) continue;
    if (const auto said = line_of(i, std::chrono::seconds(30)); !said) return said.error();
    members_[i].ready = true;
  }
  return Done{};
}

Status Team::load_up() {
  if (Status ready = await_ready(); !ready) return ready;
  const auto start = setup_.hogs_free ? start_free_hogs : start_hogs;
  auto hogs = start(setup_.hogs, {context_.cpus, context_.options.split, limit() + std::chrono::seconds(60)});
  if (!hogs) return hogs.error();
  hogs_ = std::move(*hogs);
  return Done{};
}

Status Team::begin() {
  if (hogs_.empty())
    if (Status loaded = load_up(); !loaded) return loaded;
  gate_write_.reset();
  return Done{};
}

Status Team::stop() {
  end_all(hogs_);
  for (std::size_t i = members_.size(); i-- > 0;) members_[i].child.kill();
  return own_daemon_ ? own_daemon_->stop() : Status(Done{});
}

Result<Measured> Team::finish() {
  const auto done = line_of(0, limit());
  if (!done) return done.error();
  return finish_after_done();
}

Result<Measured> Team::finish_after_done() {
  Measured measured;
  const std::uint32_t count = std::min(shared_->samples.load(), max_samples);
  measured.samples_ms.assign(shared_->sample_ms.begin(), shared_->sample_ms.begin() + count);
  end_all(hogs_);
  if (shared_->first_ms > 0) measured.extra["first_ms"] = shared_->first_ms;
  if (daemon_ != nullptr) {
    const auto status = daemon_->ask({"status"});
    if (!status) return status.error();
    for (const char* field : {"observer", "donations_total", "notifications_total", "events_lost"}) {
      if (status->contains(field)) measured.extra[field] = (*status)[field];
    }
  }
  if (const auto stopped = stop(); !stopped) return stopped.error();
  return measured;
}

std::vector<Row> rows_of_calls(const std::vector<Subject>& subjects) {
  std::vector<Row> rows;
  for (const Subject& subject : subjects) {
    Row row{.setup = subject.setup, .repeats = {summarize(subject.batches_ms)}};
    row.median = row.repeats[0];
    row.samples = {subject.batches_ms};
    row.extra["batches"] = subject.batches_ms.size();
    row.extra["measure"] = "call";
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace swapd::bench
