#include "decide/observation_budget.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace swapd::decide {

double ObservationBudget::share_between(const Sample& from, const Sample& to) {
  if (to.time <= from.time) return 0;
  return static_cast<double>((to.cpu - from.cpu).count()) / static_cast<double>((to.time - from.time).count());
}

bool ObservationBudget::due(Time now) const {
  return samples_.empty() || goes_back(now) || now - samples_.back().time >= short_window;
}

bool ObservationBudget::ends_window(const Sample& at) const {
  return at.time - samples_.back().time >= window || share_between(samples_.back(), at) > far_over * share();
}

// By less than a window it is another caller's moment, taken a little earlier.
bool ObservationBudget::goes_back(Time now) const { return samples_.back().time - now >= window; }

double ObservationBudget::share() const {
  const bool helps = !samples_.empty() && samples_.back().time - helped_ < helps_for;
  return helps ? config_.share : std::min(config_.share, config_.idle_share);
}

double ObservationBudget::used() const {
  return samples_.empty() ? 0 : share_between(samples_.front(), samples_.back());
}

// A try has a second's credit, and not five.
bool ObservationBudget::is_over() const {
  if (trying_) return used() > share();
  return used() > at_once * share() || whole_.in_debt();
}

Duration ObservationBudget::wait(Time now, Duration cpu) {
  turns_.update(now, cpu, share());
  return turns_.wait();
}

void ObservationBudget::begin_anew(const Sample& at) {
  samples_.assign(1, at);
  changed_ = at;
  helped_ = std::min(helped_, at.time);
}

Duration ObservationBudget::update(Time now, Duration cpu, bool helping) {
  if (helping) helped_ = now;
  const Sample at{now, cpu};
  whole_.update(now, cpu, share());
  if (samples_.empty() || goes_back(now)) {
    const bool starts = samples_.empty();
    begin_anew(at);
    if (starts)
      for (Duration before = window; before <= lately; before += window) samples_.push_front({now - before, cpu});
    return patience_;
  }
  if (!due(now)) return patience_;
  if (cpu < samples_.back().cpu) {
    begin_anew(at);
    return patience_;
  }
  if (!ends_window(at)) return patience_;
  const double in_window = share_between(samples_.back(), at);
  samples_.push_back(at);
  // A pause of swapd's (nothing was managed) does not count against what it does afterwards, nor for it.
  while (samples_.size() > 2 && (samples_[1].time <= now - lately || samples_[0].time < now - 2 * lately))
    samples_.pop_front();
  if (in_window > share() && is_over())
    lengthen(at);
  else if (now - changed_.time >= calm_ && used() <= share())
    shorten(at);
  shed(now);
  return patience_;
}

void ObservationBudget::shed(Time now) {
  if (!many_) return shedding_.begin_anew();
  using Patience = LoadShedding::Patience;
  shedding_.update(now, used(), config_.share,
                   patience_ == config_.max_patience   ? Patience::longest
                   : patience_ == config_.min_patience ? Patience::shortest
                                                       : Patience::between);
}

void ObservationBudget::lengthen(const Sample& at) {
  changed_ = at;
  step_ = least_step;
  if (std::exchange(trying_, false)) {
    calm_ = std::min(2 * calm_, max_calm);
    patience_ = before_;
    return;
  }
  patience_ = std::clamp(2 * patience_, config_.min_patience, config_.max_patience);
}

void ObservationBudget::shorten(const Sample& at) {
  const bool was_cheap = std::exchange(trying_, false);
  if (was_cheap) step_ = std::max(step_ * least_step, greatest_step);
  if (was_cheap || patience_ == config_.min_patience) calm_ = std::max(calm_ / 2, min_calm);
  const double of_budget = share_between(changed_, at) / (well_below * share());
  const double step = std::clamp(of_budget, greatest_step, step_);
  // More than one where swapd paused in between.
  for (auto steps = (at.time - std::exchange(changed_, at).time) / calm_; steps > 0 && patience_ > config_.min_patience;
       --steps) {
    if (!std::exchange(trying_, true)) before_ = patience_;
    patience_ = std::max(Duration(std::llround(static_cast<double>(patience_.count()) * step)), config_.min_patience);
  }
}

}  // namespace swapd::decide
