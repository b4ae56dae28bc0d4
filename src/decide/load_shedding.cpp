#include "decide/load_shedding.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {

double LoadShedding::update(Time now, double used, double share, Patience patience) {
  if (changed_ == never || now < changed_) {
    changed_ = now;
    no_cut_until_ = never;
    last_ = Last::none;
  }
  if (patience != Patience::longest || now < longest_)
    longest_ = never;
  else if (longest_ == never)
    longest_ = now;
  const double most = part_ < 1 ? share : begins * share;
  if (used > most && longest_ != never) {
    if (now - std::max(changed_, longest_) >= settles && now >= no_cut_until_) cut(now, used, share);
  } else if (used <= well_below * share && patience == Patience::shortest) {
    grow(now, used <= far_below * share ? min_calm : calm_);
  }
  return part_;
}

void LoadShedding::cut(Time now, double used, double share) {
  const Last last = std::exchange(last_, Last::cut);
  changed_ = now;
  if (last == Last::cut && used_before_ - used < worth * used_before_ * (1 - part_ / before_)) {
    part_ = before_;
    last_ = Last::none;
    no_cut_until_ = now + calm_;
    calm_ = std::min(2 * calm_, max_calm);
    return;
  }
  if (last == Last::growth) calm_ = std::min(2 * calm_, max_calm);
  before_ = part_;
  used_before_ = used;
  part_ = std::max(part_ * std::clamp(share / used, greatest_cut, 1.0), least);
}

// By more than one step where swapd paused in between.
void LoadShedding::grow(Time now, Duration calm) {
  while (part_ < 1 && now - changed_ >= calm) {
    if (std::exchange(last_, Last::growth) == Last::growth) calm_ = std::max(calm_ / 2, min_calm);
    part_ = std::min(part_ * growth, 1.0);
    changed_ += calm;
  }
}

}  // namespace swapd::decide
