#include "decide/shaping/auto_limit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace swapd::decide {
namespace {

constexpr int settles = 2;   // periods after a change that tell of the limit before
constexpr int enough = 4;    // met in a row: it is
constexpr int by_cache = 5;  // times as many where the disk has not moved what the calls have
constexpr int when_bold = 3, when_near = 6;
constexpr int too_few = 2;  // missed in a row: it is not
constexpr int recovered = 2, recovered_gently = 8, deeper = 4, drained = 16;
constexpr int at_rest = 8;  // idle in a row: they are
constexpr int first_patience = 40, max_patience = 640;
constexpr double near = 1.05;  // high and low as near as this are one
constexpr double used = 0.8;   // of a limit: it is one
constexpr double first_step = 1.05, max_step = 1.5;
constexpr double gentle_step = 1.02, max_bold_step = 1.1, known_within = 1.15;
constexpr int gentle_raises = 3;
constexpr double spoils = 2, forgives = 0.25;  // a missed period of the met ones, a met one of the missed
constexpr int gives_up = 40, first_quiet = 240, max_quiet = 2400;
constexpr double a_little_less = 0.97, less = 0.85;  // than what was enough, where it is no more
constexpr int max_lapses = 3;
constexpr double first_dip = 0.25, small_dip = 0.93, next_dip = 0.98, third_dip = 0.9;
constexpr double margin = 0.9;  // of the first guess
constexpr double asks = 0.25;   // who waits for less of his time has no use for more
constexpr double awake = 0.02;
constexpr double tolerance = 0.97;
constexpr double of_late = 0.3;  // weight of the last period
constexpr double strains = 0.25, scatters = 2.5, calms = 0.15;
constexpr double beyond_guess = 1.02, eases = 0.9;

Tokens scaled(Tokens value, double by) { return static_cast<Tokens>(std::llround(static_cast<double>(value) * by)); }

Tokens between(Tokens low, Tokens high) {
  return static_cast<Tokens>(std::llround(std::sqrt(static_cast<double>(low) * static_cast<double>(high))));
}

}  // namespace

Need NeedJudge::judge(const Seen& seen, Duration period) {
  constexpr Duration window = std::chrono::seconds(1);
  last_.push_back({seen, period});
  Duration length{};
  for (const Period& one : last_) length += one.length;
  while (last_.size() > 1 && length - last_.front().length >= window) {
    length -= last_.front().length;
    last_.pop_front();
  }
  if (seen.by_calls == 0 && seen.by_disk == 0 && seen.waited < awake) return Need::idle;
  const double seconds = std::chrono::duration<double>(length).count();
  if (seconds <= 0) return Need::met;
  double by_calls = 0, by_disk = 0, wait = 0;
  for (const Period& one : last_) {
    by_calls += static_cast<double>(one.seen.by_calls);
    by_disk += static_cast<double>(one.seen.by_disk);
    wait += one.seen.waited * std::chrono::duration<double>(one.length).count() / seconds;
  }
  if (rules_.wait && wait > *rules_.wait) return Need::missed;
  const bool too_little =
      rules_.rate && std::max(by_calls, by_disk) / seconds < tolerance * static_cast<double>(*rules_.rate);
  return too_little && wait > asks ? Need::missed : Need::met;
}

void Trend::add(double value) {
  values_.push_back(value);
  if (values_.size() > most) values_.pop_front();
}

double Trend::mean(std::size_t first, std::size_t end) const {
  if (first >= end) return 0;
  const auto at = [&](std::size_t i) { return values_.begin() + static_cast<std::ptrdiff_t>(i); };
  return std::accumulate(at(first), at(end), 0.0) / static_cast<double>(end - first);
}

double Trend::late() const { return mean(before(), values_.size()); }

bool Trend::rises(double by) const {
  if (!tells()) return false;
  const double usual = mean(0, before());
  double scatter = 0;
  for (std::size_t i = 0; i < before(); ++i) scatter += std::abs(values_[i] - usual) / static_cast<double>(before());
  return late() > usual + std::max(by, scatters * scatter);
}

void AutoLimit::go_to(State state, Tokens limit) {
  state_ = state;
  limit_ = std::max(limit, least_);
  rest_ = settles;
  met_ = missed_ = 0;
  waits_.restart();
}

void AutoLimit::recover_to(State state, Tokens target, double dip) {
  target_ = std::max(target, least_);
  then_ = state;
  if (missed_ >= too_few) enough_ = target_;
  gently_ = dip > 0.5;
  held_ = 0;
  go_to(State::recovering, scaled(target_, dip));
}

// Whoever takes less than he may says nothing of how much that may be.
bool AutoLimit::binds(const Period& one) const {
  return static_cast<double>(one.others_calls) >= used * static_cast<double>(*limit_);
}

// All that the disk was seen to move is given away, and more: that shows only once queues are full.
bool AutoLimit::is_bold() const { return all_ > 0 && static_cast<double>(*limit_) > all_ - alone_; }

// A little more than this was too much of late. What piles up then does so slowly.
bool AutoLimit::is_near_too_much() const {
  return high_ > 0 && known_within * static_cast<double>(*limit_) >= static_cast<double>(high_);
}

// In larger steps, as long as there is more to be had: up to what was left of the disk, and from what was held gently.
Tokens AutoLimit::raised() {
  if (state_ != State::seeking)
    step_ = ++raises_ < gentle_raises ? gentle_step : std::min(step_ * step_, is_bold() ? max_bold_step : max_step);
  else
    step_ = is_bold() ? first_step : std::min(step_ * step_, max_step);
  const Tokens next = std::max(scaled(low_, step_), low_ + 1);
  const auto guess = static_cast<Tokens>(beyond_guess * (all_ - alone_));
  return low_ < guess && !is_bold() ? std::min(next, guess) : next;
}

// Something piles up, or has and stays: nothing was missed yet, but will be. Where a tenth less than what was enough
// has not helped, they wait for another reason, and it takes a miss to go lower.
bool AutoLimit::heeds_strain(const Period& one) {
  const bool grown = calm_ && waits_.tells() && waits_.late() > *calm_ + 2 * strains;
  if (!binds(one) || (!grown && !waits_.rises(strains))) return false;
  if (*limit_ > eased(0)) return true;
  calm_ = waits_.late();
  waits_.restart();
  return false;
}

// No lower than a strain is a reason for.
Tokens AutoLimit::eased(Tokens limit) const { return std::max(limit, scaled(enough_, eases)); }

// What had piled up has gone.
bool AutoLimit::is_calm_again() const { return !calm_ || waits_.late() <= *calm_ + calms; }

void AutoLimit::found_enough(const Period& one) {
  low_ = *limit_;
  if (binds(one)) enough_ = std::max(enough_, low_);
  // Slowly upwards: what grows from limit to limit is not calm.
  const double now = waits_.late();
  calm_ = !calm_ || now < *calm_ ? now : *calm_ + of_late * (now - *calm_);
}

bool AutoLimit::is_enough(const Period& one) const {
  const bool by_disk = static_cast<double>(one.others_disk) >= used * static_cast<double>(one.others_calls);
  const bool bold = is_bold() || state_ == State::probing;
  return met_ >= enough * (!by_disk ? by_cache : is_near_too_much() ? when_near : bold ? when_bold : 1);
}

void AutoLimit::observe(const Period& one) {
  still_ = std::max(one.others_calls, one.others_disk) <= least_ ? still_ + 1 : 0;
  if (state_ == State::off) return unlimited(one);
  idle_ = one.need == Need::idle ? idle_ + 1 : 0;
  if (idle_ >= at_rest) {
    if (low_ > 0 || state_ == State::recovering) last_ = low_ > 0 ? low_ : target_;
    return leave();
  }
  if (one.need == Need::idle) {  // which says nothing of the limit
    const bool drains = state_ == State::recovering && then_ == State::holding && !gently_;
    if (drains && idle_ >= recovered) hold_again();
    return;
  }
  const bool missed = one.need == Need::missed;
  vain_ = missed && *limit_ <= least_ ? vain_ + 1 : 0;
  if (vain_ >= gives_up) {
    in_vain_ = true;
    next_quiet_ = std::clamp(next_quiet_ * 2, first_quiet, max_quiet);
    quiet_ = next_quiet_;
    last_.reset();
    return leave();
  }
  if (calm()) {
    waits_.restart();
    if (missed) return;
  }
  if (rest_ > 0) {
    --rest_;
    return;
  }
  waits_.add(one.waited);
  met_ = std::max(met_ + (missed ? -spoils : 1), 0.0);
  missed_ = std::max(missed_ + (missed ? 1 : -forgives), 0.0);
  switch (state_) {
    case State::off:
      return;
    case State::recovering:
      return recover(one);
    case State::seeking:
      return seek(one);
    case State::holding:
      return hold(one);
    case State::probing:
      return probe(one);
  }
}

void AutoLimit::leave() {
  if (state_ == State::holding) held_ = met_;
  state_ = State::off;
  limit_.reset();
  calm_.reset();
  missed_ = 0;
  vain_ = 0;
}

// They do next to nothing, and have for a second: whatever is missed, it is not for them.
bool AutoLimit::calm() const { return still_ >= enough; }

void AutoLimit::unlimited(const Period& one) {
  const auto follow = [](double& value, Tokens now) {
    value = value > 0 ? value + of_late * (static_cast<double>(now) - value) : static_cast<double>(now);
  };
  follow(all_, one.protected_moved + one.others_disk);
  if (one.need == Need::met) follow(alone_, one.protected_moved);
  if (quiet_ > 0) {
    --quiet_;
    return;
  }
  missed_ = one.need == Need::missed && !calm() ? missed_ + 1 : 0;
  const bool again = last_ && one.need != Need::idle && one.others_disk > *last_;
  if (missed_ < too_few && !again) return;
  in_vain_ = false;
  idle_ = 0;
  step_ = first_step;
  low_ = last_.value_or(0);
  high_ = 0;
  lapses_ = 0;
  if (last_) {
    // What was enough when they were last awake is in force before they can miss much: what has piled up is in the way.
    const double held = held_;
    recover_to(State::holding, *last_, 0.5);
    held_ = held;
    return;
  }
  patience_ = first_patience;
  const double left = alone_ > 0 ? margin * (all_ - alone_) : all_ / 4;
  recover_to(State::seeking, std::max(static_cast<Tokens>(left), static_cast<Tokens>(all_ / 8)), first_dip);
}

void AutoLimit::hold_again() {
  go_to(State::holding, target_);
  met_ = held_;
}

void AutoLimit::recover(const Period& one) {
  if (one.need == Need::met) {
    in_vain_ = false;
    next_quiet_ = 0;
    if (met_ < (gently_ ? recovered_gently : recovered)) return;
    const bool calm = !gently_ || is_calm_again();
    if (!calm && met_ < 2 * drained) return;
    if (!calm) calm_ = waits_.late();  // it is not what had piled up
    return then_ == State::holding ? hold_again() : go_to(then_, target_);
  }
  if (missed_ < drained) {
    const bool settled = then_ == State::holding && missed_ <= 2 * deeper;
    if (std::fmod(missed_, deeper) < 0.1 && one.need == Need::missed)
      limit_ = std::max(scaled(*limit_, !settled ? 0.5 : missed_ <= deeper ? next_dip : third_dip), least_);
    return;
  }
  low_ = 0;
  high_ = 0;
  all_ = 0;  // it is another disk, as it were
  calm_.reset();
  if (*limit_ > least_) return recover_to(State::seeking, target_ / 2, first_dip);
  then_ = State::seeking;
  target_ = enough_ = least_;
  missed_ = 0;
}

void AutoLimit::seek(const Period& one) {
  if (one.need == Need::missed) {
    if (missed_ < too_few) return;
    high_ = *limit_;
    if (low_ == 0) return recover_to(State::seeking, high_ / 2, first_dip);
    if (static_cast<double>(high_) <= near * static_cast<double>(low_))
      return recover_to(State::holding, low_, small_dip);
    return recover_to(State::seeking, between(low_, high_), 0.5);
  }
  if (heeds_strain(one)) {
    high_ = *limit_;
    if (low_ == 0) return recover_to(State::seeking, eased(scaled(high_, less)), small_dip);
    if (static_cast<double>(high_) <= near * static_cast<double>(low_))
      return recover_to(State::holding, low_, small_dip);
    return recover_to(State::seeking, between(low_, high_), small_dip);
  }
  if (!is_enough(one)) return;
  found_enough(one);
  const bool found = high_ > 0 && static_cast<double>(high_) <= near * static_cast<double>(low_);
  if (found || !binds(one)) {
    patience_ = found ? first_patience : enough;
    return go_to(State::holding, low_);
  }
  go_to(State::seeking, high_ > low_ ? between(low_, high_) : raised());
}

void AutoLimit::hold(const Period& one) {
  const bool missed = one.need == Need::missed;
  if (missed || heeds_strain(one)) {
    if (missed && missed_ < too_few) return;
    last_.reset();
    high_ = *limit_;
    step_ = first_step;
    patience_ = first_patience;
    if (missed && ++lapses_ >= max_lapses) {  // it will not be found in small steps
      low_ = 0;
      lapses_ = 0;
      return recover_to(State::seeking, scaled(high_, less), 0.5);
    }
    low_ = missed ? scaled(high_, a_little_less) : eased(scaled(high_, a_little_less));
    return recover_to(State::holding, low_, small_dip);
  }
  if (met_ < patience_ || !binds(one)) return;
  const bool calm = is_calm_again();
  found_enough(one);
  if (!calm) {
    met_ = 0;
    return;
  }
  raises_ = 0;
  go_to(State::probing, raised());
}

void AutoLimit::probe(const Period& one) {
  const bool missed = one.need == Need::missed;
  if (missed || heeds_strain(one)) {
    if (missed && missed_ < too_few) return;
    high_ = *limit_;
    patience_ = std::clamp(patience_ * 2, first_patience, max_patience);
    const double tried = std::exchange(step_, first_step);
    return recover_to(State::holding, low_, missed && tried > first_step ? 0.5 : small_dip);
  }
  if (!is_enough(one)) return;
  if (!binds(one)) return go_to(State::holding, low_);  // nobody has tried it
  if (!is_calm_again()) {
    patience_ = std::clamp(patience_ * 2, first_patience, max_patience);
    return go_to(State::holding, low_);
  }
  found_enough(one);
  if (low_ >= high_) high_ = 0;  // by now it is not
  lapses_ = 0;
  patience_ = enough;
  if (is_near_too_much()) raises_ = 0;
  go_to(State::probing, raised());
}

}  // namespace swapd::decide
