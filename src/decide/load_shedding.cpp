#include "decide/load_shedding.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {

double LoadShedding::update(Time now, double used, double share, Patience patience) {
  if (changed_ == never || now < changed_) changed_ = now;
  if (patience != Patience::longest || now < longest_)
    longest_ = never;
  else if (longest_ == never)
    longest_ = now;
  const double most = part_ < 1 ? share : begins * share;
  if (used > most && longest_ != never) {
    if (now - std::max(changed_, longest_) < settles) return part_;
    if (std::exchange(grew_, false)) calm_ = std::min(2 * calm_, max_calm);
    part_ = std::max(part_ * std::clamp(share / used, greatest_cut, 1.0), least);
    changed_ = now;
  } else if (part_ < 1 && used <= well_below * share && patience == Patience::shortest && now - changed_ >= calm_) {
    if (std::exchange(grew_, true)) calm_ = std::max(calm_ / 2, min_calm);
    part_ = std::min(part_ * growth, 1.0);
    changed_ = now;
  }
  return part_;
}

}  // namespace swapd::decide
