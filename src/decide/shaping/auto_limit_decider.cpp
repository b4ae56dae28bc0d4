#include "decide/shaping/auto_limit_decider.h"

#include <algorithm>
#include <utility>

#include "decide/state.h"

namespace swapd::decide {

void AutoLimitDecider::on(const Input& input) {
  if (const auto* asked = std::get_if<AutoLimitAsked>(&input)) {
    classes_.erase(asked->class_name);
    changed_ = true;
    if (asked->on)
      classes_.emplace(asked->class_name, Class{.judge = NeedJudge({.rate = asked->rate, .wait = asked->wait}),
                                                .limit = AutoLimit(asked->least),
                                                .view = {}});
  } else if (const auto* one = std::get_if<ClassFared>(&input)) {
    fared(*one);
  }
}

void AutoLimitDecider::fared(const ClassFared& fared) {
  const auto known = classes_.find(fared.class_name);
  if (known == classes_.end()) return;
  Class& one = known->second;
  const double seconds = std::max(std::chrono::duration<double>(fared.period).count(), 1e-3);
  const auto a_second = [&](Tokens bytes) { return static_cast<Tokens>(static_cast<double>(bytes) / seconds); };
  const NeedJudge::Seen seen{.by_calls = fared.by_calls, .by_disk = fared.by_disk, .waited = fared.waited};
  const Tokens achieved = a_second(seen.by_calls > 0 ? seen.by_calls : seen.by_disk);
  one.limit.observe({.need = one.judge.judge(seen, fared.period),
                     .protected_moved = achieved,
                     .others_calls = one.limit.limit() ? a_second(fared.others_calls) : 0,
                     .others_disk = a_second(fared.others_disk),
                     .waited = fared.waited});
  changed_ = changed_ || one.view.limit != one.limit.limit();
  one.view = {.limit = one.limit.limit(),
              .state = one.limit.state(),
              .in_vain = one.limit.in_vain(),
              .moved = achieved,
              .waited = fared.waited};
}

void AutoLimitDecider::decide(const model::Model& /*model*/, const Turn& /*turn*/, Plan& plan) {
  plan.keeps_demands = !std::exchange(changed_, false);
  if (plan.keeps_demands) return;
  for (const auto& [name, one] : classes_)
    if (const auto limit = one.limit.limit())
      plan.demands.emplace_back(LimitIo{name, static_cast<std::int64_t>(*limit), {decider_name, {}, {}}});
}

std::optional<AutoLimitDecider::View> AutoLimitDecider::view(const std::string& class_name) const {
  const auto known = classes_.find(class_name);
  return known == classes_.end() ? std::nullopt : std::optional(known->second.view);
}

void AutoLimitDecider::save(StateWriter& out) const { out(classes_); }
void AutoLimitDecider::restore(StateReader& in) {
  in(classes_);
  changed_ = true;
}

}  // namespace swapd::decide
