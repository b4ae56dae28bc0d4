#include "base/weight.h"

#include <algorithm>
#include <cmath>

namespace swapd {

int nice_of_weight(double weight) {
  constexpr double step = 1.25;
  const double steps = std::log(weight / usual_weight) / std::log(step);
  return static_cast<int>(std::lround(std::clamp(-steps, -20.0, 19.0)));
}

SchedAttr raised_by(const SchedAttr& own, Weight weight, Weight other) {
  const bool fair = own.policy == SchedPolicy::other || own.policy == SchedPolicy::batch;
  if (!fair || weight <= other) return own;
  SchedAttr raised = own;
  const int better = nice_of_weight(static_cast<double>(usual_weight) * weight / std::max<Weight>(other, 1));
  raised.nice = static_cast<std::int8_t>(std::max(own.nice + better, -20));
  return raised;
}

}  // namespace swapd
