// A machine that is made up: threads that stay on their CPUs, share them as their classes say, and are profiled in
// windows. CPU time is divided as if without slices, among sessions first, which all have the same weight. What a panel
// grants comes true. No kernel, no engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "decide/coscheduling/coscheduling_decider.h"
#include "unit/decide/turns.h"

namespace swapd::test {

class ParallelMachine {
 public:
  struct Runner {
    ThreadId id;
    int cpu = 0;
    std::uint64_t job = 0;
    double waits = 0;      // 0…1: of the times that it is seen, in a loop that waits
    SchedAttr base{};      // its own
    bool blocked = false;  // it wants no CPU
    SchedAttr now{};
    int session = 0;
    double used = 0;  // ns, in all
    // In the window:
    double used_before = 0, inner = 0, upper = 0, looked = 0;
  };

  Runner& add(ThreadId id, int cpu, std::uint64_t job = 0, double waits = 0, SchedAttr base = {}) {
    return runners_.emplace(id, Runner{id, cpu, job, waits, base, false, base}).first->second;
  }
  void remove(ThreadId id) {
    const Runner& one = runners_.at(id);
    used_by_gone_[{one.session, one.cpu}] += one.used - one.used_before;
    runners_.erase(id);
  }
  Runner& of(ThreadId id) { return runners_.at(id); }
  [[nodiscard]] bool has(ThreadId id) const { return runners_.contains(id); }
  [[nodiscard]] Duration used(ThreadId id) const { return whole(runners_.at(id).used); }

  void pass(Duration time) {
    const auto ns = static_cast<double>(time.count());
    for (auto& [id, one] : runners_) {
      double weights = 0;  // of its rivals in the session, itself left out
      std::set<int> sessions{one.session};
      int level = one.now.realtime() ? one.now.rt_priority : 0, highest = 0, equals = 0;
      for (const auto& [other_id, other] : runners_) {
        if (other.cpu != one.cpu || other.blocked) continue;
        const int priority = other.now.realtime() ? other.now.rt_priority : 0;
        highest = std::max(highest, priority);
        if (priority == level && level > 0) ++equals;
        if (priority == 0) sessions.insert(other.session);
        if (other_id != id && priority == 0 && other.session == one.session) weights += weight(other.now);
      }
      double all = 0;
      for (const int session : sessions) all += session_weight(session);
      const double upper = session_weight(one.session) / all;
      if (highest == 0) {
        one.inner += ns * weight(one.base) / (weight(one.base) + weights);
        one.upper += ns * upper;
        one.looked += ns;
      }
      if (one.blocked || level < highest) continue;
      one.used += level > 0 ? ns / equals : ns * upper * weight(one.now) / (weight(one.now) + weights);
    }
  }
  // The threads have these attributes from now on, all others their own.
  void apply(std::span<const decide::Grant> grants) {
    for (auto& [id, one] : runners_) one.now = one.base;
    lowered_.clear();
    for (const decide::Grant& grant : grants) {
      const auto at = runners_.find(grant.run.thread);
      if (at == runners_.end()) continue;
      at->second.now = grant.run.attr;
      if (grant.run.lowers_group && sessions_can_be_lowered) lowered_.insert(at->second.session);
    }
  }
  bool sessions_can_be_lowered = true;
  [[nodiscard]] decide::RunTime run_time(ThreadId id, Time now) const {
    const Runner& one = runners_.at(id);
    return {.time = now, .thread = id, .cpu = whole(one.used), .runnable = !one.blocked};
  }
  // Returns what each thread of a job did since the last window.
  std::vector<decide::ThreadProfiled> end_window(Time now, Duration window) {
    std::vector<decide::ThreadProfiled> out;
    auto together = std::exchange(used_by_gone_, {});
    std::map<int, double> of_session;
    std::map<std::pair<int, std::uint64_t>, double> of_job;
    for (const auto& [place, used] : together) of_session[place.first] += used;
    for (const auto& [id, one] : runners_) {
      together[{one.session, one.cpu}] += one.used - one.used_before;
      of_session[one.session] += one.used - one.used_before;
      of_job[{one.session, one.job}] += one.used - one.used_before;
    }
    for (auto& [id, one] : runners_) {
      const double used = one.used - std::exchange(one.used_before, one.used);
      const double inner = std::exchange(one.inner, 0), upper = std::exchange(one.upper, 0);
      const double looked = std::exchange(one.looked, 0);
      if (one.job == 0 || used <= 0) continue;
      out.push_back({.time = now,
                     .thread = id,
                     .job = one.job,
                     .window = window,
                     .cpu = whole(used),
                     .spinning = one.waits,
                     .share_known = looked > 0,
                     .inner = looked > 0 ? inner / looked : 1,
                     .upper = looked > 0 ? upper / looked : 1,
                     .group_use = std::min(together[{one.session, one.cpu}] / static_cast<double>(window.count()), 1.0),
                     .group_others = (of_session[one.session] - of_job[{one.session, one.job}]) /
                                     static_cast<double>(window.count()),
                     .weight = weight(one.base),
                     .group = static_cast<std::uint64_t>(one.cpu + 1 + 100 * one.session),
                     .cpu_number = one.cpu});
    }
    return out;
  }
  static std::uint32_t weight(const SchedAttr& attr) {
    if (attr.policy == SchedPolicy::idle) return 3;
    double weight = 1024;  // five nice values are about a factor of three
    for (int nice = attr.nice; nice < 0; ++nice) weight *= 1.25;
    for (int nice = attr.nice; nice > 0; --nice) weight /= 1.25;
    return static_cast<std::uint32_t>(weight);
  }

 private:
  [[nodiscard]] double session_weight(int session) const { return lowered_.contains(session) ? 15 : 1024; }
  static Duration whole(double ns) { return Duration(static_cast<Duration::rep>(ns)); }
  std::map<ThreadId, Runner> runners_;
  std::set<int> lowered_;                               // sessions
  std::map<std::pair<int, int>, double> used_by_gone_;  // in this window, by session and CPU
};

// Parallel jobs beside others on such a machine, under a panel with a coscheduling decider.
class ParallelRun {
 public:
  static constexpr Duration window = std::chrono::milliseconds(125);
  static constexpr std::size_t coscheduling = 1;  // among the deciders

  explicit ParallelRun(decide::CoschedulingConfig config = two_cpus())
      : config_(std::move(config)), turns_(make(config_)) {
    turns_.on_look = [this](const decide::Look& look) { answer(look); };
    window_ends_ = turns_.now + window;
  }
  static decide::CoschedulingConfig two_cpus() {
    decide::CoschedulingConfig config;
    config.cpus = 2;
    return config;
  }

  // A managed thread that spins; `waits`: how often it is seen so.
  void spinner(ThreadId id, int cpu, std::uint64_t job = 1, double waits = 0.8, SchedAttr base = {},
               ClassId class_id = 0) {
    machine.add(id, cpu, job, waits, base);
    turns_.take(Enrolled{turns_.now, id, id.tid, 1000, base, class_id, usual_weight});
  }
  // A program that swapd does not manage and that never stops.
  ThreadId hog(int cpu, int session = 0) {
    const ThreadId id{next_hog_++, 1};
    machine.add(id, cpu).session = session;
    return id;
  }
  // A message comes for the thread; the deciders learn of it if they have asked to.
  void message(ThreadId id) {
    const std::vector<ThreadId>& called = turns_.panel->standing(coscheduling).called;
    if (std::ranges::find(called, id) == called.end()) return;
    turns_.panel->on(decide::MessageCalled{turns_.now, id});
    turns_.turn();
    machine.apply(turns_.panel->grants());
  }
  void leaves(ThreadId id) {
    machine.remove(id);
    turns_.leaves(id);
    machine.apply(turns_.panel->grants());
  }

  // Deciders that know nothing, over the same model, as in a new replay.
  void lose_state() {
    auto all = make(config_);
    all.insert(all.begin(), std::make_unique<decide::DonationDecider>(decide::DonationConfig{}));
    turns_.panel = std::make_unique<decide::Panel>(turns_.model, decide::BudgetConfig{}, std::move(all));
  }

  void run(Duration time) {
    const Time end = turns_.now + time;
    while (turns_.now < end) step(end);
  }
  // Runs until that is so, for a second at the most.
  bool run_until(const std::function<bool()>& wanted) {
    const Time end = turns_.now + std::chrono::seconds(1);
    while (turns_.now < end && !wanted()) step(end);
    return wanted();
  }

  [[nodiscard]] std::optional<SchedAttr> runs_as(ThreadId id) const { return turns_.runs_as(id); }
  [[nodiscard]] bool touched(ThreadId id) const { return turns_.grant(id) != nullptr; }
  [[nodiscard]] bool in_slot(ThreadId id) const {
    const auto attr = runs_as(id);
    return attr && attr->realtime();
  }
  [[nodiscard]] bool between_slots(ThreadId id) const {
    const auto attr = runs_as(id);
    return attr && attr->policy == SchedPolicy::idle;
  }
  [[nodiscard]] Duration used(ThreadId id) const { return machine.used(id); }
  [[nodiscard]] const decide::ShortTurns& short_turns() const {
    return turns_.panel->standing(coscheduling).short_turns;
  }
  [[nodiscard]] Time now() const { return turns_.now; }
  [[nodiscard]] decide::JobFinder::State state(std::uint64_t job = 1) const {
    const auto& jobs = decider->finder().jobs();
    const auto at = jobs.find(job);
    return at == jobs.end() ? decide::JobFinder::State::alone : at->second.verdict;
  }
  [[nodiscard]] Turns& turns() { return turns_; }
  [[nodiscard]] int turns_taken() const { return turns_taken_; }

  ParallelMachine machine;
  const decide::CoschedulingDecider* decider = nullptr;
  std::function<void()> after_turn;

 private:
  std::vector<std::unique_ptr<decide::Decider>> make(const decide::CoschedulingConfig& config) {
    auto made = std::make_unique<decide::CoschedulingDecider>(config);
    decider = made.get();
    std::vector<std::unique_ptr<decide::Decider>> all;
    all.push_back(std::move(made));
    return all;
  }
  void answer(const decide::Look& look) {
    if (look.at == decide::Look::At::run_time && machine.has(look.thread))
      turns_.panel->on(machine.run_time(look.thread, turns_.now));
  }
  void step(Time end) {
    const Time next = std::min({end, window_ends_, turns_.panel->next().value_or(end)});
    const Duration time = std::max(next - turns_.now, Duration::zero());
    // A turn takes a microsecond.
    machine.pass(time + std::chrono::microseconds(1));
    turns_.pass(time);
    if (turns_.now >= window_ends_) {
      for (const decide::ThreadProfiled& one : machine.end_window(turns_.now, window)) turns_.panel->on(one);
      window_ends_ += window;
    }
    turns_.turn();
    ++turns_taken_;
    machine.apply(turns_.panel->grants());
    if (after_turn) after_turn();
  }

  decide::CoschedulingConfig config_;
  Turns turns_;
  Time window_ends_;
  pid_t next_hog_ = 5000;
  int turns_taken_ = 0;
};

}  // namespace swapd::test
