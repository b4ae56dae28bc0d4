#include "decide/auto_limit.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace swapd::decide {
namespace {

constexpr int settles = 2;  // periods after a change, of which what is in the queues tells nothing yet
constexpr int enough = 4;   // met in a row: it is
constexpr int too_few = 2;  // missed in a row: it is not
constexpr int at_rest = 8;  // idle in a row: they are
constexpr int first_patience = 40, most_patience = 640;
constexpr double near = 1.05;  // high and low as near as this are one
constexpr double used = 0.8;   // of a limit: it is one
constexpr double first_step = 1.05, most_step = 1.5;
constexpr double asks = 0.25;  // who waits for less of his time has no use for more
constexpr double awake = 0.02;
constexpr double tolerance = 0.97;

Tokens scaled(Tokens value, double by) { return static_cast<Tokens>(std::llround(static_cast<double>(value) * by)); }

Tokens between(Tokens low, Tokens high) {
  return static_cast<Tokens>(std::llround(std::sqrt(static_cast<double>(low) * static_cast<double>(high))));
}

}  // namespace

Need NeedJudge::judge(Tokens moved, double waited, Duration period) {
  constexpr Duration window = std::chrono::seconds(1);
  last_.push_back({moved, waited, period});
  Duration length{};
  for (const Period& one : last_) length += one.length;
  while (last_.size() > 1 && length - last_.front().length >= window) {
    length -= last_.front().length;
    last_.pop_front();
  }
  if (moved == 0 && waited < awake) return Need::idle;
  const double seconds = std::chrono::duration<double>(length).count();
  if (seconds <= 0) return Need::met;
  double total = 0, wait = 0;
  for (const Period& one : last_) {
    total += static_cast<double>(one.moved);
    wait += one.waited * std::chrono::duration<double>(one.length).count() / seconds;
  }
  if (rules_.wait && wait > *rules_.wait) return Need::missed;
  if (rules_.rate && total / seconds < tolerance * static_cast<double>(*rules_.rate) && wait > asks)
    return Need::missed;
  return Need::met;
}

void AutoLimit::go_to(State state, Tokens limit) {
  state_ = state;
  limit_ = std::max(limit, least_);
  rest_ = settles;
  met_ = missed_ = 0;
}

// From well below: while the right one is sought they shall miss as little as may be.
void AutoLimit::begin(Tokens others) {
  low_ = last_.value_or(0);
  high_ = last_ ? 0 : others;
  in_vain_ = false;
  patience_ = first_patience;
  step_ = first_step;
  go_to(last_ ? State::holding : State::seeking, last_ ? *last_ : others / 4);
}

void AutoLimit::begin_again() {
  high_ = *limit_;
  low_ = 0;
  go_to(State::seeking, *limit_ / 2);
}

void AutoLimit::observe(Need need, Tokens others) {
  idle_ = need == Need::idle ? idle_ + 1 : 0;
  if (idle_ >= at_rest) {
    if (state_ == State::holding || state_ == State::probing) last_ = low_;
    state_ = State::off;
    limit_.reset();
    in_vain_ = false;
    missed_ = 0;
    return;
  }
  if (need == Need::idle && state_ != State::off) return;  // which says nothing of the limit
  if (state_ == State::off) {
    missed_ = need == Need::missed ? missed_ + 1 : 0;
    // What was enough when they were last awake is in force before they can miss anything.
    if (missed_ >= too_few || (last_ && need != Need::idle && others > *last_)) begin(others);
    return;
  }
  if (rest_ > 0) {
    --rest_;
    return;
  }
  met_ = need == Need::missed ? 0 : met_ + 1;
  missed_ = need == Need::missed ? missed_ + 1 : 0;
  switch (state_) {
    case State::off:
      return;
    case State::seeking:
      return seek(need, others);
    case State::holding:
      return hold(need, others);
    case State::probing:
      return probe(need);
  }
}

void AutoLimit::seek(Need need, Tokens others) {
  if (need == Need::missed) {
    if (missed_ < too_few) return;
    high_ = *limit_;
    in_vain_ = high_ <= least_;
    if (in_vain_) return;
    return go_to(State::seeking, low_ > 0 ? between(low_, high_) : high_ / 2);
  }
  if (met_ < enough) return;
  if (std::exchange(in_vain_, false)) high_ = 0;  // that was another disk, as it were
  low_ = *limit_;
  const bool binds = static_cast<double>(others) >= used * static_cast<double>(low_);
  const bool found = high_ > 0 && static_cast<double>(high_) <= near * static_cast<double>(low_);
  if (found || !binds) {
    patience_ = first_patience;
    return go_to(State::holding, low_);
  }
  go_to(State::seeking, high_ > low_ ? between(low_, std::max(high_, low_ + 1)) : low_ * 2);
}

void AutoLimit::hold(Need need, Tokens others) {
  if (need == Need::missed) {
    if (missed_ < too_few) return;
    last_.reset();
    return begin_again();
  }
  const bool binds = static_cast<double>(others) >= used * static_cast<double>(*limit_);
  if (met_ < patience_ || !binds) return;
  low_ = *limit_;
  go_to(State::probing, std::max(scaled(low_, step_), low_ + 1));
}

void AutoLimit::probe(Need need) {
  if (need == Need::missed) {
    if (missed_ < too_few) return;
    high_ = *limit_;
    patience_ = std::min(patience_ * 2, most_patience);
    step_ = first_step;
    return go_to(State::holding, low_);
  }
  if (met_ < enough) return;
  low_ = *limit_;
  // There is more to be had than there was: in larger steps, as long as it is.
  step_ = std::min(step_ * step_, most_step);
  patience_ = enough;
  go_to(State::holding, low_);
}

}  // namespace swapd::decide
