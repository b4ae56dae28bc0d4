#include "decide/coscheduling/controller.h"

#include <algorithm>
#include <cmath>

namespace swapd::decide::coscheduling {

std::optional<double> FairnessWindow::fairness() const {
  if (elapsed <= Duration::zero() || share <= 0) return {};
  return static_cast<double>(used.count()) / static_cast<double>(elapsed.count()) / share;
}

void FairnessController::update(const FairnessWindow& window) {
  const std::optional<double> fairness = window.fairness();
  if (!fairness) return;
  fairness_ = fairness;
  const double lacks = 1 - *fairness;
  if (std::abs(lacks) <= tuning_.dead_band) return;
  const bool would_matter = lacks > 0 ? window.refused > 0 : window.granted > 0;
  if (!would_matter) return;
  terms_.exponent = std::clamp(terms_.exponent + tuning_.gain * lacks, tuning_.min_exponent, tuning_.max_exponent);
  const Duration bound = window.queue.length();
  const auto step = static_cast<Duration::rep>(tuning_.integral_gain * lacks * static_cast<double>(bound.count()));
  terms_.constant = std::clamp(terms_.constant + Duration(step), -bound, bound);
}

}  // namespace swapd::decide::coscheduling
