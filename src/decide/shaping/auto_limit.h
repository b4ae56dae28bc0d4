// Finds and follows the highest limit for some programs' I/O that leaves others what they need ([TAP08 §6], automatic
// limits). Pure: once a period it hears how the protected programs fared.
//
// How much is left for them at which limit is not known, and changes. The first guess is what the disk moved in all,
// less what the protected programs moved alone. After that all that is known is an order: a limit under which they had
// what they need, and one under which they had not. Between the two it halves the distance (of the logarithm) until
// they are within a twentieth, and then holds the lower one. Every now and then it tries a little more, more gently and
// for longer if that was too much of late; each time in vain makes the next try later. If what was enough is no more,
// it goes a little lower, and if that is of no use it begins again. What has piled up in queues meanwhile hides what a
// lower limit does: so that goes first. And it piles up before anything is missed: a program that reads ahead then
// waits for more and more of its time, while the limit stays as it is, which tells that it is too high (a strain). A
// need that is missed while the limited programs do next to nothing is not their doing; and if not even the least limit
// helps, none is set for a while, and for longer each time.
//
//            a need is missed                 drained, nothing known
//      ┌─────┐ ────────────▶ ┌────────────┐ ──────────────────▶ ┌─────────┐ ─┐ enough:
//      │ off │               │ recovering │ ◀────────────────── │ seeking │ ◀┘ higher
//      └─────┘ ◀── idle, ─── └────────────┘  missed, strained   └─────────┘
//         in vain: from        │   ▲   ▲                             │ enough, and low and high are one
//         any state            │   │   └── missed, strained ──┐      ▼ (or the limit is not used)
//                 drained,     │   │                     ┌─────────┐
//                 target known └───┼───────────────────▶ │ holding │ ◀─┐ enough, but not calm,
//                                  │                     └─────────┘   │ or the limit is not used
//                                  │       patience is over   │        │
//                                  │                          ▼        │
//                                  │   missed, strained  ┌─────────┐ ──┘
//                                  └──────────────────── │ probing │ ─┐ enough:
//                                                        └─────────┘ ◀┘ higher
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "decide/shaping/limits.h"
#include "decide/shaping/need_judge.h"
#include "decide/shaping/trend.h"

namespace swapd::decide {

class AutoLimit {
 public:
  static constexpr Duration period = std::chrono::milliseconds(250);

  // Periods are counted since the limit changed, unless it says otherwise. A factor is of a limit, a share of a whole.
  struct Tuning {
    // --- evidence ---
    int settle_periods = 2;       // after a change that still tell of the limit before
    int enough_periods = 4;       // met in a row: the limit leaves enough
    int cache_factor = 5;         // times enough_periods, while the limited programs' calls are served from memory
    int bold_factor = 3;          // times enough_periods, at a limit that gives away all that the disk was seen to move
    int near_factor = 6;          // times enough_periods, near a limit that was too much
    int missed_periods = 2;       // missed in a row: the limit does not leave enough
    double miss_weight = 2;       // met periods that a missed period takes away
    double met_weight = 0.25;     // missed periods that a met period takes away
    double used_share = 0.8;      // of a limit: programs that use as much are bound by it
    double latest_weight = 0.3;   // 0…1, of the last period in a mean of late
    double strain_rise = 0.25;    // share of the time: waiting that grows by as much is a strain
    double scatter_factor = 2.5;  // and by as many times what it scatters
    double calm_within = 0.15;    // share of the time: no more above what was usual is calm
    int idle_periods = 8;         // idle in a row: the protected programs have ended what they did
    // --- recovering ---
    int recovered_periods = 2;                // met: queues are drained
    int gently_recovered_periods = 8;         // the same after a small dip
    int deeper_periods = 4;                   // missed: the limit goes down further, each time
    int drained_periods = 16;                 // missed: it is not what had piled up; search anew
    double first_dip = 0.25;                  // factor on the target, when nothing is known
    double small_dip = 0.93;                  // factor on the target, when a little was too much
    double next_dip = 0.98, third_dip = 0.9;  // factors on the limit, when it goes down further
    // --- seeking ---
    double same_within = 1.05;                 // factor: high and low as near as this are one
    double first_guess_share = 0.9;            // of what the disk moved, less what the protected programs moved alone
    double beyond_guess_factor = 1.02;         // on that difference: not passed in one step
    double first_step = 1.05, max_step = 1.5;  // factors upwards; each step is the square of the one before
    double max_bold_step = 1.1;                // factor upwards at most, at a bold limit
    double near_within = 1.15;                 // factor: a limit as near below one that was too much is near it
    double strain_step_fraction = 0.9;         // of what was enough: a strain alone takes the limit no lower
    // --- holding and probing ---
    int first_patience = 40, max_patience = 640;  // periods to hold before the next try
    int gentle_raises = 3;                        // tries up to that many go up by gentle_step
    double gentle_step = 1.02;                    // factor upwards
    double lapse_factor = 0.97;                   // on a limit that was enough and is no more
    double far_lapse_factor = 0.85;               // on the same, where small steps have not helped
    int max_lapses = 3;                           // in a row: search anew
    // --- giving up ---
    int give_up_periods = 40;                 // missed at the least limit, in a row
    int first_quiet = 240, max_quiet = 2400;  // periods without any limit then; doubles
  };

  enum class State : std::uint8_t {
    off,         // no limit: none is needed
    recovering,  // far below, until what has piled up is gone and they have what they need again
    seeking,     // between a limit that is too high and one that may be too low
    holding,     // the highest that is enough
    probing,     // whether a little more is enough by now
  };
  struct Period {
    Need need = Need::idle;
    Tokens protected_moved = 0;  // a second, as the others
    Tokens others_calls = 0;     // what the limit counts; nothing while there is none
    Tokens others_disk = 0;      // what the disk moved for them, which may be more or less: it is read ahead
    double waited = 0;           // 0…1: the part of it that the protected thread that waits longest waited for I/O
  };

  // The limit is never below `least`.
  explicit AutoLimit(Tokens least) : least_(least) {}

  void observe(const Period& one);
  // Bytes a second; nothing: none.
  [[nodiscard]] std::optional<Tokens> limit() const { return limit_; }
  [[nodiscard]] State state() const { return state_; }
  // It is, or was of late, as low as it may be, and not low enough.
  [[nodiscard]] bool in_vain() const { return vain_.now; }

 private:
  void leave();
  [[nodiscard]] bool calm() const;
  void unlimited(const Period& one);
  void recover(const Period& one);
  void seek(const Period& one);
  void hold(const Period& one);
  void probe(const Period& one);
  void go_to(State state, Tokens limit);
  // First down to a part of it.
  void recover_to(State state, Tokens target, double dip);
  [[nodiscard]] bool binds(const Period& one) const;
  [[nodiscard]] bool is_enough(const Period& one) const;
  [[nodiscard]] bool is_bold() const;
  [[nodiscard]] bool is_near_too_much() const;
  [[nodiscard]] bool is_found() const;
  [[nodiscard]] bool heeds_strain(const Period& one);
  [[nodiscard]] Tokens eased(Tokens limit) const;
  [[nodiscard]] bool is_calm_again() const;
  void found_enough(const Period& one);
  void hold_again();
  [[nodiscard]] Tokens raised();

  Tokens least_;
  State state_ = State::off;
  std::optional<Tokens> limit_;
  std::optional<Tokens> last_;  // what was enough when they were last active
  // Bytes a second.
  struct {
    double alone = 0;  // what they moved while no program was limited and they missed nothing
    double all = 0;    // what the disk moves, all together, of late
  } moved_;
  struct {
    Tokens low = 0;     // was enough; 0: not known
    Tokens high = 0;    // was too much; 0: not known
    Tokens enough = 0;  // the highest that was, or is thought to be, since something was last missed
  } bounds_;
  struct {
    Tokens target = 0;  // the limit after it
    State then = State::seeking;
    bool gently = false;  // it goes only a little down meanwhile
  } recovery_;
  // For the limit and against it, since it changed.
  struct {
    int rest = 0;                // periods that tell of the limit before
    double met = 0, missed = 0;  // periods; each takes from the other
    Trend waits;
  } evidence_;
  std::optional<double> calm_wait_;  // how much they waited when it was enough
  struct {
    int idle = 0;       // periods in which the protected programs asked for nothing
    int still = 1'000;  // periods in which the limited programs did next to nothing
  } silence_;
  struct {
    int periods = 0;  // at the least
    int quiet = 0;    // periods to leave it
    int next_quiet = 0;
    bool now = false;
  } vain_;
  struct {
    int lapses = 0;    // of what was held, since more was enough
    int patience = 0;  // periods to hold before the next try
    double step = 0;   // of the next try
    int raises = 0;    // tries since it was last held
  } tries_;
  double held_met_ = 0;  // met periods of holding before they became idle
};

}  // namespace swapd::decide
