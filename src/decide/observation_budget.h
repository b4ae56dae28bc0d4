// Keeps the CPU time of swapd's own threads within a share of one CPU. Pure: time and CPU time are parameters.
//
// All that swapd does waits for its CPU time to come in, at nine tenths of the budget (wait(), decide/cpu_credit.h).
// If that is not enough (a turn of the engine has too much to read), the second means is patience: how long a wait
// may go on before swapd looks at it. The longer that is, the fewer waits are told.
//
// Patience doubles with each window (100 ms) over the budget, if what swapd has saved of the whole budget is used up,
// too, or the last second was over twice of it: most bursts end before a longer patience would have spared anything,
// and help in them is late for nothing. (The time before swapd began to observe counts as quiet.) A window ends after
// 20 ms where it is far over the budget (four times): two hundred threads that begin to talk shall not pay for long.
//
// After a second within the budget a shorter patience is tried: by a quarter, and by more with each try that was not
// too dear, down to a quarter of it. (swapd may use as much with any patience.) Where swapd used less than
// 60 % of the budget since the last change, it is at once as short as would leave the use below those 60 % if it grew
// as patience shrinks. If a try turns out to be too dear, patience is again what it was before, and the next try takes
// twice as long, up to 16 s: waits that all last as long as the patience would otherwise have it swing.
//
// If the longest patience is not enough either, and there are many threads, swapd hears of a part of them only
// (heard()); the budget that counts there is that while it helps.
#pragma once

#include <deque>

#include "base/time.h"
#include "decide/cpu_credit.h"
#include "decide/load_shedding.h"

namespace swapd::decide {

class ObservationBudget {
 public:
  struct Config {
    double share = 0.05;       // of one CPU, while swapd helps
    double idle_share = 0.02;  // … and else; the lower one of the two counts
    Duration min_patience = std::chrono::milliseconds(1);
    Duration max_patience = std::chrono::milliseconds(64);
  };
  static constexpr Duration window = std::chrono::milliseconds(100);
  static constexpr Duration short_window = std::chrono::milliseconds(20);
  static constexpr double far_over = 4;                             // times the budget: a window is over
  static constexpr Duration lately = std::chrono::seconds(1);       // what used() covers …
  static constexpr double at_once = 2;                              // … and may be, times the budget
  static constexpr double part = 0.9;                               // of the budget, that comes in
  static constexpr Duration helps_for = std::chrono::seconds(2);    // after the last time that it helped
  static constexpr Duration min_calm = std::chrono::seconds(1);     // from a change of patience to the next shorter one
  static constexpr Duration max_calm = std::chrono::seconds(16);    // … after tries that were too dear
  static constexpr double well_below = 0.6;                         // of the budget
  static constexpr double least_step = 0.75, greatest_step = 0.25;  // times the patience before; the first, the last

  explicit ObservationBudget(const Config& config) : config_(config), patience_(config.min_patience) {}

  // cpu: that swapd has used in all. helping: a boost is in force, or one was since the last call. Call at least each
  // window while anything is observed; more often does no harm. A clock that has gone back begins anew, with the
  // patience of before.
  Duration update(Time now, Duration cpu, bool helping);
  // At this moment update() would have use of the CPU time.
  [[nodiscard]] bool due(Time now) const;

  [[nodiscard]] Duration patience() const { return patience_; }
  // Whether there are so many threads that swapd may hear of a part of them only.
  void set_many(bool many) { many_ = many; }
  // The part of the watched threads that swapd hears of, up to 1 (decide/load_shedding.h).
  [[nodiscard]] double heard() const { return shedding_.part(); }
  // How long what swapd is about to do waits, having used so much CPU time in all. Call before each turn.
  Duration wait(Time now, Duration cpu);
  // As of the last turn.
  [[nodiscard]] Duration wait() const { return turns_.wait(); }
  [[nodiscard]] const Config& config() const { return config_; }
  // The budget in force, as a share of one CPU.
  [[nodiscard]] double share() const;
  // The share of one CPU that swapd has used: over the last second, or since the last look where that is longer ago.
  [[nodiscard]] double used() const;

 private:
  struct Sample {
    Time time;
    Duration cpu{};
  };
  [[nodiscard]] static double share_between(const Sample& from, const Sample& to);
  [[nodiscard]] bool goes_back(Time now) const;
  [[nodiscard]] bool ends_window(const Sample& at) const;
  [[nodiscard]] bool is_over() const;
  void begin_anew(const Sample& at);
  void lengthen(const Sample& at);
  void shorten(const Sample& at);
  void shed(Time now);

  Config config_;
  Duration patience_;
  CpuCredit turns_{part}, whole_{1};
  LoadShedding shedding_;
  bool many_ = false;
  std::deque<Sample> samples_;  // of the last second, the last window's end at the back
  Sample changed_;              // patience, or it was tried whether it may be shorter
  Duration calm_ = min_calm;    // … which is done after so long
  bool trying_ = false;         // the last change made it shorter …
  Duration before_{};           // … than this
  double step_ = least_step;    // of the next try
  Time helped_ = never;
};

}  // namespace swapd::decide
