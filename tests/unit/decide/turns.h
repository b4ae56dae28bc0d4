// A panel of deciders and a small world that it decides over: events in, turns, demands out. No kernel, no engine.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "decide/donation/donation_decider.h"
#include "decide/panel.h"
#include "unit/model/world.h"

namespace swapd::test {

class Turns {
 public:
  explicit Turns(std::vector<std::unique_ptr<decide::Decider>> more = {}, decide::BudgetConfig budgets = {},
                 decide::DonationConfig config = {}, model::Settings settings = {})
      : model(settings) {
    auto made = std::make_unique<decide::DonationDecider>(std::move(config));
    donation = made.get();
    more.insert(more.begin(), std::move(made));
    panel = std::make_unique<decide::Panel>(model, std::move(budgets), std::move(more));
  }

  void pass(Duration time) { now += time; }
  void take(const Event& event) {
    if (panel->admits(event)) panel->feed(event);
  }
  void enroll(ThreadId id, SchedAttr base = {}, std::uint32_t uid = 1000, Weight weight = usual_weight) {
    take(Enrolled{now, id, id.tid, uid, base, 0, weight});
  }
  void provides(ThreadId id, const Resource& what, Evidence evidence = Evidence::accessed) {
    take(Accessed{now, id, what, evidence});
  }
  void blocks(ThreadId id, std::vector<Resource> awaited) { take(Blocked{now, id, 0, std::move(awaited)}); }
  void wakes(ThreadId id, ThreadId by, const Resource& through) { take(Woken{now, id, by, through, false}); }
  void leaves(ThreadId id) {
    take(Exited{now, id});
    panel->forget(id);
  }
  // One turn to its end; what is asked of observer and worker gathers.
  void turn(bool tick = false) {
    now += std::chrono::microseconds(1);
    looks.clear();
    questions.clear();
    decide::Turn one{.now = now, .first = true, .tick = tick, .may_ask = tick};
    for (rounds = 1; rounds <= 16; ++rounds) {
      const auto answer = panel->decide(one);
      for (std::size_t i = 0; i < panel->size(); ++i) {
        const decide::Plan& plan = panel->plan(i);
        looks.insert(looks.end(), plan.looks.begin(), plan.looks.end());
        questions.insert(questions.end(), plan.questions.begin(), plan.questions.end());
        for (const decide::Interest& interest : plan.interests) interests[interest.thread] = interest;
      }
      for (std::size_t i = 0; on_look && i < panel->size(); ++i)
        for (const decide::Look& look : panel->plan(i).looks) on_look(look);
      one.first = one.tick = false;
      if (answer.complete) return;
    }
  }
  // The rank that the last turn gives the thread; its own if nothing is granted.
  [[nodiscard]] const decide::Grant* grant(ThreadId thread) const {
    for (const decide::Grant& one : panel->grants())
      if (one.run.thread == thread) return &one;
    return nullptr;
  }
  [[nodiscard]] std::optional<SchedAttr> runs_as(ThreadId thread) const {
    const decide::Grant* one = grant(thread);
    return one == nullptr ? std::nullopt : std::optional(one->run.attr);
  }
  [[nodiscard]] ThreadId on_behalf_of(ThreadId thread) const {
    const decide::Grant* one = grant(thread);
    return one == nullptr ? ThreadId{} : one->run.cause.on_behalf_of;
  }
  [[nodiscard]] const decide::Timer* timer(ThreadId requester, decide::Timer::Kind kind) const {
    for (const decide::Timer& one : panel->standing(0).timers)
      if (one.requester == requester && one.kind == kind) return &one;
    return nullptr;
  }
  void fires(ThreadId requester, decide::Timer::Kind kind, Duration wall_left = milliseconds(30)) {
    const decide::Timer* one = timer(requester, kind);
    ASSERT_NE(one, nullptr);
    panel->on(decide::TimerFired{
        .time = now, .kind = kind, .requester = requester, .serial = one->serial, .wall_left = wall_left});
  }

  model::Model model;
  const decide::DonationDecider* donation = nullptr;
  std::unique_ptr<decide::Panel> panel;
  Time now{std::chrono::hours(1)};
  std::vector<decide::Look> looks;
  std::vector<decide::Question> questions;
  std::map<ThreadId, decide::Interest> interests;
  int rounds = 0;
  std::function<void(const decide::Look&)> on_look;  // before the next round
};

inline SchedAttr donated(SchedAttr attr) {
  attr.reset_on_fork = true;
  return attr;
}

}  // namespace swapd::test
