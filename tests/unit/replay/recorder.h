// A live run and its recording: what the engine does with a model, deciders and an encoder, without the engine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decide/donation/donation_decider.h"
#include "decide/panel.h"
#include "replay/encode.h"
#include "unit/model/world.h"

namespace swapd::test {

class Recorder {
 public:
  explicit Recorder(model::Settings settings = {}, decide::DonationRules rules = {}, decide::BudgetConfig budgets = {},
                    std::optional<decide::CoschedulingConfig> coscheduling = {},
                    std::optional<decide::LevelsConfig> levels = {})
      : model(settings),
        config_{.rules = std::move(rules)},
        budgets_(std::move(budgets)),
        coscheduling_(std::move(coscheduling)),
        levels_(std::move(levels)) {
    auto made = std::make_unique<decide::DonationDecider>(config_);
    donation = made.get();
    std::vector<std::unique_ptr<decide::Decider>> deciders;
    deciders.push_back(std::move(made));
    deciders.push_back(std::make_unique<decide::AutoLimitDecider>());
    if (coscheduling_) deciders.push_back(std::make_unique<decide::CoschedulingDecider>(*coscheduling_));
    if (levels_) deciders.push_back(std::make_unique<decide::LevelsDecider>(*levels_));
    panel = std::make_unique<decide::Panel>(model, budgets_, std::move(deciders));
  }

  // From here on all is recorded.
  void begin(std::uint64_t lost = 0) {
    if (text.empty()) encoder.add(text, replay::Header{.swapd = "test", .boot_id = "none"});
    if (lost > 0) encoder.add(text, replay::Gap{lost});
    encoder.add(text, model.settings());
    encoder.add(text, config_);
    encoder.add(text, budgets_);
    if (coscheduling_) encoder.add(text, *coscheduling_);
    if (levels_) encoder.add(text, *levels_);
    encoder.add(text, replay::Snapshot{now, model.image(), panel->save()});
    recording = true;
  }
  void apply(const Event& event) {
    now = std::visit([](const auto& e) { return e.time; }, event);
    if (!panel->admits(event)) return;
    if (recording) encoder.add(text, event);
    panel->feed(event);
  }
  void input(const decide::Input& input) {
    now = std::visit([](const auto& e) { return e.time; }, input);
    if (recording) encoder.add(text, input);
    panel->on(input);
  }
  // The provider of the requester's donation has used its quantum.
  void uses_quantum(ThreadId requester, Time at) {
    for (const decide::Timer& timer : std::vector(panel->standing(0).timers))
      if (timer.requester == requester && timer.kind == decide::Timer::Kind::quantum)
        input(decide::TimerFired{.time = at, .requester = requester, .serial = timer.serial});
  }
  const Vector<decide::Donation>& turn(bool tick = false) {
    decide::Turn turn{.now = now, .first = true, .tick = tick, .may_ask = tick};
    for (int round = 0; round < 16; ++round) {
      if (recording) encoder.add(text, turn);
      const auto answer = panel->decide(turn);
      for (std::size_t i = 0; on_look && i < panel->size(); ++i)
        for (const decide::Look& look : panel->plan(i).looks) on_look(look);
      turn.first = turn.tick = false;
      if (answer.new_demands && recording)
        encoder.add(text, replay::Granted{now,
                                          {panel->grants().begin(), panel->grants().end()},
                                          panel->limits(),
                                          {panel->away().begin(), panel->away().end()}});
      if (answer.complete) break;
    }
    return donation->donations();
  }
  void forget(ThreadId thread) {
    panel->forget(thread);
    if (recording) encoder.add(text, replay::Left{thread});
  }
  void end() { encoder.add(text, replay::End{}); }

  model::Model model;
  std::unique_ptr<decide::Panel> panel;
  const decide::DonationDecider* donation = nullptr;
  replay::Encoder encoder;
  std::string text;
  Time now{};
  bool recording = false;
  std::function<void(const decide::Look&)> on_look;  // before the next round

 private:
  decide::DonationConfig config_;
  decide::BudgetConfig budgets_;
  std::optional<decide::CoschedulingConfig> coscheduling_;
  std::optional<decide::LevelsConfig> levels_;
};

}  // namespace swapd::test
