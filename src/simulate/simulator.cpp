#include "simulate/simulator.h"

#include <algorithm>
#include <numeric>

namespace swapd::simulate {

using decide::coscheduling::Epoch;

namespace {

std::vector<std::uint32_t> members_of(const Scenario& scenario) {
  std::vector<std::uint32_t> counts;
  for (const Job& job : scenario.jobs) counts.push_back(scenario.nodes_of(job));
  return counts;
}

// The rate of random events of a process that has the CPU.
double rate_of(const Job& job) { return job.messages + job.switches + job.blocks; }

double cycles(const Scenario& scenario, Duration time) {
  return std::chrono::duration<double, std::micro>(time).count() / scenario.cycle_us;
}

}  // namespace

Simulator::Simulator(const Scenario& scenario)
    : scenario_(scenario),
      machine_(make_machine(scenario)),
      random_(scenario.seed),
      events_(scenario.nodes),
      rules_(scenario, machine_.processes.size()),
      tally_(members_of(scenario)) {
  if (rules_.automatic()) {
    next_window_ = scenario_.time(scenario_.scheduler.window);
    used_at_window_.assign(machine_.processes.size(), Duration::zero());
  }
  for (Process& process : machine_.processes) {
    const Job& job = job_of(process);
    if (job.program == Program::barrier || (job.program == Program::token && process.node == 0)) begin_grain(process);
    if (job.program == Program::token && process.node != 0) begin_wait(process);
  }
}

Outcome Simulator::run() {
  const Duration warm = scenario_.time(static_cast<double>(scenario_.warmup));
  const Duration end = warm + scenario_.time(static_cast<double>(scenario_.cycles));
  tally_.restart(now_, end);
  for (std::uint32_t n = 0; n < machine_.nodes.size(); ++n) {
    Node& node = machine_.nodes[n];
    if (node.ready.empty()) continue;
    const std::uint32_t first = random_.below(static_cast<std::uint32_t>(node.ready.size()));
    std::rotate(node.ready.begin(), node.ready.begin() + first, node.ready.end());
    const std::uint16_t place = node.ready.front();
    node.ready.erase(node.ready.begin());
    dispatch(n, place);
  }
  run_until(warm);
  restart_counting(end);
  run_until(end);
  return outcome();
}

void Simulator::run_until(Duration end) {
  for (;;) {
    const Duration arrival = pending_.time();
    const Duration event = events_.time();
    const Duration next = std::min({arrival, event, next_window_});
    if (next >= end) break;
    now_ = next;
    ++handled_;
    if (next_window_ == next)
      end_window();
    else if (arrival == next)
      arrive(pending_.pop());
    else
      act(events_.node());
  }
  now_ = end;
}

void Simulator::restart_counting(Duration end) {
  for (Node& node : machine_.nodes) {
    settle(node);
    node.switching = Duration::zero();
  }
  for (Process& process : machine_.processes) {
    process.useful = process.spun = Duration::zero();
    process.rounds = process.sent = 0;
  }
  tally_.restart(now_, end);
  rules_.forget_counts();
  spontaneous_ = called_ = 0;
  counted_from_ = now_;
}

void Simulator::act(std::uint32_t n) {
  Node& node = machine_.nodes[n];
  switch (node.action) {
    case Action::nothing:
      plan(n);
      break;
    case Action::at_random:
      act_at_random(n);
      break;
    case Action::grain_ends:
      settle(node);
      end_grain(node.first + node.running);
      plan(n);
      break;
    case Action::spin_ends:
      settle(node);
      running(node).phase = Phase::blocked;
      leave(n, false);
      break;
    case Action::slice_ends:
      leave(n, true);
      break;
  }
}

void Simulator::act_at_random(std::uint32_t n) {
  Node& node = machine_.nodes[n];
  const std::uint32_t index = node.first + node.running;
  Process& process = machine_.processes[index];
  const Job& job = job_of(process);
  const double chosen = random_.fraction() * rate_of(job);
  if (chosen <= job.messages) {
    const std::vector<std::uint32_t>& members = machine_.members[process.job];
    const std::uint32_t mate = random_.below(static_cast<std::uint32_t>(members.size()) - 1);
    send(index, members[mate < process.node ? mate : mate + 1]);
    plan(n);
  } else if (chosen <= job.messages + job.switches) {
    leave(n, true);
  } else {
    settle(node);
    process.resumes = process.phase;
    process.phase = Phase::asleep;
    pending_.push(now_ + scenario_.time(job.block_cycles * random_.exponential()), {.process = index, .wake = true});
    leave(n, false);
  }
}

double Simulator::varied(double length, double by) {
  return by > 0 ? length * (1 + by * (2 * random_.fraction() - 1)) : length;
}

void Simulator::begin_grain(Process& process) {
  const Job& job = job_of(process);
  process.phase = Phase::computing;
  process.left = std::max(scenario_.time(varied(job.grain, job.variation)), Duration(1));
}

void Simulator::begin_wait(Process& process) {
  const Job& job = job_of(process);
  process.phase = Phase::waiting;
  process.spin_left = job.receive == Receive::spin         ? not_at_all
                      : job.receive == Receive::spin_block ? scenario_.time(job.spin)
                                                           : Duration::zero();
}

// The process waits before it sends: an answer to a message without latency comes within send().
void Simulator::end_grain(std::uint32_t index) {
  Process& process = machine_.processes[index];
  const std::vector<std::uint32_t>& members = machine_.members[process.job];
  ++process.rounds;
  begin_wait(process);
  const Program program = job_of(process).program;
  if (program == Program::token) send(index, members[(process.node + 1) % members.size()]);
  if (program == Program::barrier && process.node != 0) send(index, members.front());
  if (process.phase == Phase::waiting) take_messages(index);
}

// A barrier's root waits for all others, each of which waits for the root's answer.
bool Simulator::has_what_it_waits_for(const Process& process) const {
  const bool is_root = job_of(process).program == Program::barrier && process.node == 0;
  const std::size_t awaited = is_root ? machine_.members[process.job].size() - 1 : 1;
  return process.unread >= awaited;
}

void Simulator::take_messages(std::uint32_t index) {
  Process& process = machine_.processes[index];
  if (!has_what_it_waits_for(process)) return;
  const std::vector<std::uint32_t>& members = machine_.members[process.job];
  const bool is_root = job_of(process).program == Program::barrier && process.node == 0;
  process.unread -= is_root ? static_cast<std::uint32_t>(members.size()) - 1 : 1;
  begin_grain(process);
  if (!is_root) return;
  for (std::size_t i = 1; i < members.size(); ++i) send(index, members[i]);
}

void Simulator::send(std::uint32_t from, std::uint32_t to) {
  Process& process = machine_.processes[from];
  ++process.sent;
  const Arrival arrival{.process = to, .epoch = machine_.nodes[process.node].epoch.current()};
  const Link& link = scenario_.link;
  if (link.latency <= 0 && link.jitter <= 0) return arrive(arrival);
  const double jitter = link.jitter > 0 ? link.jitter * random_.fraction() : 0;
  pending_.push(now_ + scenario_.time(link.latency + jitter), arrival);
}

void Simulator::arrive(const Arrival& arrival) {
  Process& process = machine_.processes[arrival.process];
  Node& node = machine_.nodes[process.node];
  if (arrival.wake) {
    process.phase = process.resumes;
    node.ready.push_back(process.place);
    if (node.running == no_place) offer(arrival.process, arrival.epoch, false);
    return;
  }
  if (job_of(process).program != Program::random) ++process.unread;
  if (node.running == process.place) {
    if (process.phase != Phase::waiting || !has_what_it_waits_for(process)) return;
    settle(node);
    take_messages(arrival.process);
    plan(process.node);
    return;
  }
  if (process.phase == Phase::asleep) return;
  bool woken = false;
  if (process.phase == Phase::blocked) {
    if (!has_what_it_waits_for(process)) return;
    process.phase = Phase::waiting;
    node.ready.push_back(process.place);
    woken = true;
  }
  offer(arrival.process, arrival.epoch, woken);
}

// The process is runnable without the CPU, and a message has come for it.
void Simulator::offer(std::uint32_t index, Epoch epoch, bool woken) {
  const Process& process = machine_.processes[index];
  Node& node = machine_.nodes[process.node];
  const bool idle = node.running == no_place;
  if (!idle) {
    settle(node);
    const bool by_kernel = woken && scenario_.scheduler.wakeup_preempts;
    if (!by_kernel && !(scenario_.scheduler.coschedule && rules_.grants(node, process, index, epoch, now_))) return;
  }
  std::erase(node.ready, process.place);
  if (!idle) {
    node.ready.insert(node.ready.begin(), node.running);
    undispatch(process.node);
    ++called_;
  }
  node.epoch.adopt(epoch);
  dispatch(process.node, process.place);
}

void Simulator::leave(std::uint32_t n, bool stays_ready) {
  Node& node = machine_.nodes[n];
  settle(node);
  if (stays_ready && node.ready.empty()) {
    begin_slice(node, now_);
    return plan(n);
  }
  const std::uint16_t left = node.running;
  undispatch(n);
  if (stays_ready) node.ready.push_back(left);
  if (node.ready.empty()) return plan(n);
  auto chosen = node.ready.begin();
  if (scenario_.scheduler.pick == Pick::least_run)
    chosen = std::ranges::min_element(node.ready, {}, [&](std::uint16_t place) { return node.run_times.of(place); });
  const std::uint16_t next = *chosen;
  node.ready.erase(chosen);
  ++spontaneous_;
  if (machine_.processes[node.first + left].job != machine_.processes[node.first + next].job) node.epoch.switched();
  dispatch(n, next);
}

void Simulator::begin_slice(Node& node, Duration at) {
  const Scheduler& scheduler = scenario_.scheduler;
  if (scheduler.slice <= 0) return;
  node.slice_end = at + std::max(scenario_.time(varied(scheduler.slice, scheduler.slice_variation)), Duration(1));
}

void Simulator::dispatch(std::uint32_t n, std::uint16_t place) {
  Node& node = machine_.nodes[n];
  node.running = place;
  node.since = now_;
  node.works_from = now_ + scenario_.time(scenario_.scheduler.switch_cost);
  begin_slice(node, node.works_from);
  const Process& process = running(node);
  tally_.add(process.job, 1, now_);
  if (process.phase == Phase::waiting) take_messages(node.first + place);
  plan(n);
}

void Simulator::undispatch(std::uint32_t n) {
  Node& node = machine_.nodes[n];
  tally_.add(running(node).job, -1, now_);
  node.running = no_place;
}

void Simulator::settle(Node& node) {
  const Duration elapsed = now_ - node.since;
  node.since = now_;
  if (node.running == no_place || elapsed == Duration::zero()) return;
  const Duration before = now_ - elapsed;
  const Duration switching = std::clamp(node.works_from - before, Duration::zero(), elapsed);
  const Duration worked = elapsed - switching;
  node.switching += switching;
  node.run_times.ran(node.running, elapsed);
  Process& process = running(node);
  if (process.phase == Phase::computing) {
    process.useful += worked;
    process.left -= worked;
  } else {
    process.spun += worked;
    if (process.spin_left != not_at_all) process.spin_left -= worked;
  }
}

void Simulator::plan(std::uint32_t n) {
  Node& node = machine_.nodes[n];
  node.action = Action::nothing;
  if (node.running == no_place) return events_.set(n, not_at_all);
  const Process& process = running(node);
  const Job& job = job_of(process);
  const Duration start = std::max(now_, node.works_from);
  Duration at = node.slice_end;
  node.action = Action::slice_ends;
  const auto sooner = [&](Duration other, Action action) {
    if (other >= at) return;
    at = other;
    node.action = action;
  };
  if (job.program == Program::token || job.program == Program::barrier) {
    if (process.phase == Phase::computing) sooner(start + process.left, Action::grain_ends);
    if (process.phase == Phase::waiting && process.spin_left != not_at_all)
      sooner(start + process.spin_left, Action::spin_ends);
  }
  constexpr double farthest = 1e18;  // ns: past any end, and no overflow
  if (const double rate = rate_of(job); rate > 0) {
    const double after = random_.exponential() * scenario_.cycle_us * 1000 / rate;
    sooner(start + Duration(static_cast<Duration::rep>(std::min(after, farthest))), Action::at_random);
  }
  events_.set(n, at);
}

void Simulator::end_window() {
  std::vector<Duration> used(machine_.processes.size());
  for (Node& node : machine_.nodes) settle(node);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const Process& process = machine_.processes[i];
    const Duration all = machine_.nodes[process.node].run_times.of(process.place);
    used[i] = all - used_at_window_[i];
    used_at_window_[i] = all;
  }
  const Duration window = scenario_.time(scenario_.scheduler.window);
  rules_.end_window(machine_, used, window);
  next_window_ = now_ + window;
}

Outcome Simulator::outcome() {
  for (Node& node : machine_.nodes) settle(node);
  tally_.finish(now_);
  const auto counted = static_cast<double>((now_ - counted_from_).count());
  Outcome outcome{
      .coscheduled = tally_.coscheduled(), .spontaneous = spontaneous_, .called = called_, .events = handled_};
  for (const Node& node : machine_.nodes)
    outcome.switching += static_cast<double>(node.switching.count()) / counted / scenario_.nodes;
  for (std::size_t j = 0; j < scenario_.jobs.size(); ++j) {
    const std::vector<std::uint32_t>& members = machine_.members[j];
    JobOutcome job{.name = scenario_.jobs[j].name, .calls = rules_.counts()[j], .coscheduled = tally_.coscheduled(j)};
    const auto processes = static_cast<double>(members.size());
    for (const std::uint32_t member : members) {
      const Process& process = machine_.processes[member];
      const double share = static_cast<double>((process.useful + process.spun).count()) / counted;
      job.share += share / processes;
      job.fairness += share * scenario_.processes_on(process.node) / processes;
      job.useful += cycles(scenario_, process.useful);
      job.spun += cycles(scenario_, process.spun);
      job.messages += process.sent;
      job.rounds += static_cast<double>(process.rounds) / processes;
    }
    if (job.useful + job.spun > 0) job.efficiency = job.useful / (job.useful + job.spun);
    job.nearly = tally_.at_least(j, 0.9);
    job.mean_exponent = rules_.mean_exponent(members);
    if (scenario_.states) job.states = tally_.states(j);
    if (scenario_.jobs[j].sends()) outcome.nearly += job.nearly;
    outcome.jobs.push_back(std::move(job));
  }
  return outcome;
}

}  // namespace swapd::simulate
