#include "decide/panel.h"

#include <algorithm>
#include <utility>

#include "decide/lasting_demands.h"
#include "decide/state.h"
#include "model/model.h"

namespace swapd::decide {

Panel::Panel(model::Model& model, BudgetConfig budgets, std::vector<std::unique_ptr<Decider>> deciders)
    : model_(model),
      deciders_(std::move(deciders)),
      plans_(deciders_.size()),
      standing_(deciders_.size()),
      arbiter_(std::move(budgets)) {}

bool Panel::admits(const Event& event) const {
  return std::ranges::all_of(deciders_, [&](const auto& decider) { return decider->admits(event, model_); });
}

void Panel::feed(const Event& event) {
  for (const auto& decider : deciders_) decider->before(event, model_);
  model_.apply(event);
  for (const auto& decider : deciders_) decider->after(event, model_);
}

void Panel::on(const Input& input) {
  if (const auto* used = std::get_if<BudgetUsed>(&input)) {
    (void)charge(*used);
  } else if (const auto* fired = std::get_if<TimerFired>(&input)) {
    if (fired->decider < deciders_.size()) deciders_[fired->decider]->on(input);
  } else {
    for (const auto& decider : deciders_) decider->on(input);
  }
}

void Panel::forget(ThreadId thread) {
  for (const auto& decider : deciders_) decider->forget(thread);
  arbiter_.budgets().forget(thread);
}

Panel::Answer Panel::decide(const Turn& turn) {
  Answer answer;
  for (std::size_t i = 0; i < deciders_.size(); ++i) {
    Plan& plan = plans_[i];
    clear(plan);
    deciders_[i]->decide(model_, turn, plan);
    answer.complete = answer.complete && plan.complete;
    if (plan.keeps_demands) continue;
    answer.new_demands = true;
    std::swap(plan.demands, standing_[i].demands);
    standing_[i].lasting = plan.lasting;
    std::swap(plan.timers, standing_[i].timers);
    std::swap(plan.metered, standing_[i].metered);
    std::swap(plan.called, standing_[i].called);
    std::swap(plan.short_turns, standing_[i].short_turns);
  }
  for (Plan& plan : plans_)
    for (const Event& event : std::exchange(plan.feedback, {})) feed(event);
  if (!answer.new_demands) return answer;
  (void)arbiter_.merge(standing_, turn.now);
  find_limits();
  find_away();
  return answer;
}

// The lowest of several limits for one class.
void Panel::find_limits() {
  limits_.clear();
  for (const Plan& plan : standing_)
    for (const Demand& demand : plan.demands)
      if (const auto* limit = std::get_if<LimitIo>(&demand); limit != nullptr && limit->bytes_a_second) {
        const auto [at, is_new] = limits_.try_emplace(limit->class_name, *limit->bytes_a_second);
        if (!is_new) at->second = std::min(at->second, *limit->bytes_a_second);
      }
}

void Panel::find_away() {
  away_.clear();
  for (const Plan& plan : standing_)
    for (const Demand& demand : plan.demands)
      if (const auto* away = std::get_if<PutAway>(&demand)) away_.push_back(away->tgid);
  std::ranges::sort(away_);
}

bool Panel::idle() const {
  return std::ranges::all_of(plans_, [](const Plan& plan) { return plan.complete && plan.idle; });
}
bool Panel::needs_calls() const { return std::ranges::any_of(plans_, &Plan::needs_calls); }

bool Panel::may_batch() const {
  return std::ranges::any_of(plans_, &Plan::may_batch) &&
         std::ranges::all_of(plans_, [](const Plan& plan) { return plan.complete && (plan.may_batch || plan.idle); });
}

std::optional<Time> Panel::next() const {
  std::optional<Time> next = arbiter_.next_resume();
  for (const Plan& plan : plans_)
    if (plan.next) next = std::min(*plan.next, next.value_or(Time::max()));
  return next;
}

std::optional<Time> Panel::punctual_next() const {
  std::optional<Time> next = arbiter_.next_resume();
  for (const Plan& plan : plans_)
    if (plan.next && plan.punctual) next = std::min(*plan.next, next.value_or(Time::max()));
  return next;
}

std::vector<DeciderState> Panel::save() const {
  std::vector<DeciderState> out;
  for (const auto& decider : deciders_) {
    StateWriter writer;
    decider->save(writer);
    out.push_back({std::string(decider->name()), writer.numbers(), writer.times()});
  }
  StateWriter budgets;
  budgets(arbiter_.budgets());
  out.push_back({std::string(budgets_name), budgets.numbers(), budgets.times()});
  return out;
}

bool Panel::restore(std::span<const DeciderState> states) {
  for (const DeciderState& state : states) {
    StateReader reader(state.numbers);
    if (state.name == budgets_name) {
      reader(arbiter_.budgets());
      arbiter_.begin_anew();
    } else {
      const auto decider =
          std::ranges::find(deciders_, state.name, [](const auto& one) { return std::string(one->name()); });
      if (decider == deciders_.end()) continue;
      (*decider)->restore(reader);
    }
    if (!reader.good()) return false;
  }
  return true;
}

}  // namespace swapd::decide
