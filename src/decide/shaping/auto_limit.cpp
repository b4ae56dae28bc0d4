#include "decide/shaping/auto_limit.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace swapd::decide {
namespace {

constexpr AutoLimit::Tuning tuning;
constexpr double half = 0.5;

Tokens scaled(Tokens value, double by) { return static_cast<Tokens>(std::llround(static_cast<double>(value) * by)); }

Tokens between(Tokens low, Tokens high) {
  return static_cast<Tokens>(std::llround(std::sqrt(static_cast<double>(low) * static_cast<double>(high))));
}

}  // namespace

void AutoLimit::go_to(State state, Tokens limit) {
  state_ = state;
  limit_ = std::max(limit, least_);
  evidence_.rest = tuning.settle_periods;
  evidence_.met = evidence_.missed = 0;
  evidence_.waits.restart();
}

void AutoLimit::recover_to(State state, Tokens target, double dip) {
  recovery_.target = std::max(target, least_);
  recovery_.then = state;
  if (evidence_.missed >= tuning.missed_periods) bounds_.enough = recovery_.target;
  recovery_.gently = dip > 0.5;
  held_met_ = 0;
  go_to(State::recovering, scaled(recovery_.target, dip));
}

// Limited programs that take less than they may say nothing of how much that may be.
bool AutoLimit::binds(const Period& one) const {
  return static_cast<double>(one.others_calls) >= tuning.used_share * static_cast<double>(*limit_);
}

// All that the disk was seen to move is given away, and more: that shows only once queues are full.
bool AutoLimit::is_bold() const { return moved_.all > 0 && static_cast<double>(*limit_) > moved_.all - moved_.alone; }

// A little more than this was too much of late. What piles up then does so slowly.
bool AutoLimit::is_near_too_much() const {
  return bounds_.high > 0 && tuning.near_within * static_cast<double>(*limit_) >= static_cast<double>(bounds_.high);
}

// In larger steps, as long as there is more to be had: up to what was left of the disk, and from what was held gently.
Tokens AutoLimit::raised() {
  if (state_ != State::seeking)
    tries_.step = ++tries_.raises < tuning.gentle_raises
                      ? tuning.gentle_step
                      : std::min(tries_.step * tries_.step, is_bold() ? tuning.max_bold_step : tuning.max_step);
  else
    tries_.step = is_bold() ? tuning.first_step : std::min(tries_.step * tries_.step, tuning.max_step);
  const Tokens next = std::max(scaled(bounds_.low, tries_.step), bounds_.low + 1);
  const auto guess = static_cast<Tokens>(tuning.beyond_guess_factor * (moved_.all - moved_.alone));
  return bounds_.low < guess && !is_bold() ? std::min(next, guess) : next;
}

// Something piles up, or has and stays: nothing was missed yet, but will be. Where a tenth less than what was enough
// has not helped, they wait for another reason, and it takes a miss to go lower.
bool AutoLimit::heeds_strain(const Period& one) {
  const bool grown =
      calm_wait_ && evidence_.waits.tells() && evidence_.waits.late() > *calm_wait_ + 2 * tuning.strain_rise;
  if (!binds(one) || (!grown && !evidence_.waits.rises(tuning.strain_rise, tuning.scatter_factor))) return false;
  if (*limit_ > eased(0)) return true;
  calm_wait_ = evidence_.waits.late();
  evidence_.waits.restart();
  return false;
}

// No lower than a strain is a reason for.
Tokens AutoLimit::eased(Tokens limit) const {
  return std::max(limit, scaled(bounds_.enough, tuning.strain_step_fraction));
}

// High and low are so near that they are one. Asked where both are known, or only the low one.
bool AutoLimit::is_found() const {
  return bounds_.high > 0 && static_cast<double>(bounds_.high) <= tuning.same_within * static_cast<double>(bounds_.low);
}

// The queues that had piled up are gone.
bool AutoLimit::is_calm_again() const {
  return !calm_wait_ || evidence_.waits.late() <= *calm_wait_ + tuning.calm_within;
}

void AutoLimit::found_enough(const Period& one) {
  bounds_.low = *limit_;
  if (binds(one)) bounds_.enough = std::max(bounds_.enough, bounds_.low);
  // Slowly upwards: what grows from limit to limit is not calm.
  const double now = evidence_.waits.late();
  calm_wait_ = !calm_wait_ || now < *calm_wait_ ? now : *calm_wait_ + tuning.latest_weight * (now - *calm_wait_);
}

bool AutoLimit::is_enough(const Period& one) const {
  const bool by_disk =
      static_cast<double>(one.others_disk) >= tuning.used_share * static_cast<double>(one.others_calls);
  const bool bold = is_bold() || state_ == State::probing;
  return evidence_.met >= tuning.enough_periods * (!by_disk             ? tuning.cache_factor
                                                   : is_near_too_much() ? tuning.near_factor
                                                   : bold               ? tuning.bold_factor
                                                                        : 1);
}

void AutoLimit::observe(const Period& one) {
  silence_.still = std::max(one.others_calls, one.others_disk) <= least_ ? silence_.still + 1 : 0;
  if (state_ == State::off) return unlimited(one);
  silence_.idle = one.need == Need::idle ? silence_.idle + 1 : 0;
  if (silence_.idle >= tuning.idle_periods) {
    if (bounds_.low > 0 || state_ == State::recovering) last_ = bounds_.low > 0 ? bounds_.low : recovery_.target;
    return leave();
  }
  if (one.need == Need::idle) {  // which says nothing of the limit
    const bool drains = state_ == State::recovering && recovery_.then == State::holding && !recovery_.gently;
    if (drains && silence_.idle >= tuning.recovered_periods) hold_again();
    return;
  }
  const bool missed = one.need == Need::missed;
  vain_.periods = missed && *limit_ <= least_ ? vain_.periods + 1 : 0;
  if (vain_.periods >= tuning.give_up_periods) {
    vain_.now = true;
    vain_.next_quiet = std::clamp(vain_.next_quiet * 2, tuning.first_quiet, tuning.max_quiet);
    vain_.quiet = vain_.next_quiet;
    last_.reset();
    return leave();
  }
  if (calm()) {
    evidence_.waits.restart();
    if (missed) return;
  }
  if (evidence_.rest > 0) {
    --evidence_.rest;
    return;
  }
  evidence_.waits.add(one.waited);
  evidence_.met = std::max(evidence_.met + (missed ? -tuning.miss_weight : 1), 0.0);
  evidence_.missed = std::max(evidence_.missed + (missed ? 1 : -tuning.met_weight), 0.0);
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
  if (state_ == State::holding) held_met_ = evidence_.met;
  state_ = State::off;
  limit_.reset();
  calm_wait_.reset();
  evidence_.missed = 0;
  vain_.periods = 0;
}

// They do next to nothing, and have for a second: whatever is missed, it is not for them.
bool AutoLimit::calm() const { return silence_.still >= tuning.enough_periods; }

void AutoLimit::unlimited(const Period& one) {
  const auto follow = [](double& value, Tokens now) {
    value = value > 0 ? value + tuning.latest_weight * (static_cast<double>(now) - value) : static_cast<double>(now);
  };
  follow(moved_.all, one.protected_moved + one.others_disk);
  if (one.need == Need::met) follow(moved_.alone, one.protected_moved);
  if (vain_.quiet > 0) {
    --vain_.quiet;
    return;
  }
  evidence_.missed = one.need == Need::missed && !calm() ? evidence_.missed + 1 : 0;
  const bool again = last_ && one.need != Need::idle && one.others_disk > *last_;
  if (evidence_.missed < tuning.missed_periods && !again) return;
  vain_.now = false;
  silence_.idle = 0;
  tries_.step = tuning.first_step;
  bounds_.low = last_.value_or(0);
  bounds_.high = 0;
  tries_.lapses = 0;
  if (last_) {
    // The limit that was enough when they were last awake is in force before they can miss much: what has piled up is
    // in the way.
    const double held = held_met_;
    recover_to(State::holding, *last_, half);
    held_met_ = held;
    return;
  }
  tries_.patience = tuning.first_patience;
  const double left = moved_.alone > 0 ? tuning.first_guess_share * (moved_.all - moved_.alone) : moved_.all / 4;
  recover_to(State::seeking, std::max(static_cast<Tokens>(left), static_cast<Tokens>(moved_.all / 8)),
             tuning.first_dip);
}

void AutoLimit::hold_again() {
  go_to(State::holding, recovery_.target);
  evidence_.met = held_met_;
}

void AutoLimit::recover(const Period& one) {
  if (one.need == Need::met) {
    vain_.now = false;
    vain_.next_quiet = 0;
    if (evidence_.met < (recovery_.gently ? tuning.gently_recovered_periods : tuning.recovered_periods)) return;
    const bool calm = !recovery_.gently || is_calm_again();
    if (!calm && evidence_.met < 2 * tuning.drained_periods) return;
    if (!calm) calm_wait_ = evidence_.waits.late();  // it is not what had piled up
    return recovery_.then == State::holding ? hold_again() : go_to(recovery_.then, recovery_.target);
  }
  if (evidence_.missed < tuning.drained_periods) {
    const bool settled = recovery_.then == State::holding && evidence_.missed <= 2 * tuning.deeper_periods;
    if (std::fmod(evidence_.missed, tuning.deeper_periods) < 0.1 && one.need == Need::missed)
      limit_ = std::max(scaled(*limit_, !settled                                    ? half
                                        : evidence_.missed <= tuning.deeper_periods ? tuning.next_dip
                                                                                    : tuning.third_dip),
                        least_);
    return;
  }
  bounds_.low = 0;
  bounds_.high = 0;
  moved_.all = 0;  // it is another disk, as it were
  calm_wait_.reset();
  if (*limit_ > least_) return recover_to(State::seeking, recovery_.target / 2, tuning.first_dip);
  recovery_.then = State::seeking;
  recovery_.target = bounds_.enough = least_;
  evidence_.missed = 0;
}

void AutoLimit::seek(const Period& one) {
  if (one.need == Need::missed) {
    if (evidence_.missed < tuning.missed_periods) return;
    bounds_.high = *limit_;
    if (bounds_.low == 0) return recover_to(State::seeking, bounds_.high / 2, tuning.first_dip);
    if (is_found()) return recover_to(State::holding, bounds_.low, tuning.small_dip);
    return recover_to(State::seeking, between(bounds_.low, bounds_.high), half);
  }
  if (heeds_strain(one)) {
    bounds_.high = *limit_;
    if (bounds_.low == 0)
      return recover_to(State::seeking, eased(scaled(bounds_.high, tuning.far_lapse_factor)), tuning.small_dip);
    if (is_found()) return recover_to(State::holding, bounds_.low, tuning.small_dip);
    return recover_to(State::seeking, between(bounds_.low, bounds_.high), tuning.small_dip);
  }
  if (!is_enough(one)) return;
  found_enough(one);
  const bool found = is_found();
  if (found || !binds(one)) {
    tries_.patience = found ? tuning.first_patience : tuning.enough_periods;
    return go_to(State::holding, bounds_.low);
  }
  go_to(State::seeking, bounds_.high > bounds_.low ? between(bounds_.low, bounds_.high) : raised());
}

void AutoLimit::hold(const Period& one) {
  const bool missed = one.need == Need::missed;
  if (missed || heeds_strain(one)) {
    if (missed && evidence_.missed < tuning.missed_periods) return;
    last_.reset();
    bounds_.high = *limit_;
    tries_.step = tuning.first_step;
    tries_.patience = tuning.first_patience;
    if (missed && ++tries_.lapses >= tuning.max_lapses) {  // it will not be found in small steps
      bounds_.low = 0;
      tries_.lapses = 0;
      return recover_to(State::seeking, scaled(bounds_.high, tuning.far_lapse_factor), half);
    }
    bounds_.low = missed ? scaled(bounds_.high, tuning.lapse_factor) : eased(scaled(bounds_.high, tuning.lapse_factor));
    return recover_to(State::holding, bounds_.low, tuning.small_dip);
  }
  if (evidence_.met < tries_.patience || !binds(one)) return;
  const bool calm = is_calm_again();
  found_enough(one);
  if (!calm) {
    evidence_.met = 0;
    return;
  }
  tries_.raises = 0;
  go_to(State::probing, raised());
}

void AutoLimit::probe(const Period& one) {
  const bool missed = one.need == Need::missed;
  if (missed || heeds_strain(one)) {
    if (missed && evidence_.missed < tuning.missed_periods) return;
    bounds_.high = *limit_;
    tries_.patience = std::clamp(tries_.patience * 2, tuning.first_patience, tuning.max_patience);
    const double tried = std::exchange(tries_.step, tuning.first_step);
    return recover_to(State::holding, bounds_.low, missed && tried > tuning.first_step ? half : tuning.small_dip);
  }
  if (!is_enough(one)) return;
  if (!binds(one)) return go_to(State::holding, bounds_.low);  // it was not tried
  if (!is_calm_again()) {
    tries_.patience = std::clamp(tries_.patience * 2, tuning.first_patience, tuning.max_patience);
    return go_to(State::holding, bounds_.low);
  }
  found_enough(one);
  if (bounds_.low >= bounds_.high) bounds_.high = 0;  // by now it is not
  tries_.lapses = 0;
  tries_.patience = tuning.enough_periods;
  if (is_near_too_much()) tries_.raises = 0;
  go_to(State::probing, raised());
}

}  // namespace swapd::decide
