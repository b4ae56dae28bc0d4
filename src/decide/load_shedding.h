// Load shedding: patience alone may not keep swapd within its budget of CPU time. A load of hundreds of threads is
// helped in part then, and in turn. Pure: time and CPU time are parameters.
//
// If swapd uses more than twice its budget although its patience has been at its longest for a second, it hears of as
// large a part of the threads as the budget would pay for. The part is cut further as long as the budget does not hold
// so. A cut that spared next to nothing is taken back, and the next one waits: then it is something else that costs so
// much, and help for fewer threads would be for nothing. Once the budget has held for a while with the shortest
// patience, and by far, the part doubles; a growth that was too dear is taken back, and the next one takes twice as
// long, unless hardly anything is used any more.
#pragma once

#include "base/time.h"

namespace swapd::decide {

class LoadShedding {
 public:
  static constexpr double begins = 2;                            // times the budget
  static constexpr double well_below = 0.6;                      // of the budget: the part may grow
  static constexpr double far_below = 0.15;                      // … and need not wait longer than it must
  static constexpr double greatest_cut = 0.125;                  // times the part before
  static constexpr double growth = 2;                            // the same
  static constexpr double least = 1.0 / 64;                      // part
  static constexpr double worth = 0.25;                          // of what it could have spared, that a cut must spare
  static constexpr Duration settles = std::chrono::seconds(1);   // until a change shows in what is used
  static constexpr Duration min_calm = std::chrono::seconds(2);  // from a change of the part to growth
  static constexpr Duration max_calm = std::chrono::seconds(64);

  enum class Patience : unsigned char { shortest, between, longest };
  // used: in the last second, share: the budget, both of one CPU. The part, which is in (0, 1].
  double update(Time now, double used, double share, Patience patience);
  // All are heard of, and of what was learnt about the load nothing is known any more.
  void begin_anew() { *this = {}; }
  [[nodiscard]] double part() const { return part_; }

 private:
  void cut(Time now, double used, double share);
  void grow(Time now, Duration calm);

  double part_ = 1;
  Time changed_ = never;
  Time longest_ = never;  // since when patience has been at its longest; never: it is not
  Duration calm_ = min_calm;
  Time no_cut_until_ = never;
  double before_ = 1;       // the part, with the last cut …
  double used_before_ = 0;  // … and what was used
  enum class Last : unsigned char { none, cut, growth } last_ = Last::none;
};

}  // namespace swapd::decide
