// Leaves out of very many demands for the same threads those that no arbiter will need. Pure.
//
// A hundred requesters that wait for one of a hundred providers would demand ten thousand things. One is granted for
// each provider; another one counts only while the budgets of all before it rest.
#pragma once

#include <cstdint>
#include <vector>

#include "decide/decider.h"

namespace swapd::decide {

class Alternatives {
 public:
  static constexpr std::size_t usual_demands = 512;  // up to so many nothing is left out
  static constexpr std::size_t max_of_a_payer = 4;   // for one thread, of one user and class
  static constexpr std::size_t max_withheld = 1;     // … besides, that give nothing for the present

  // A new plan begins.
  void begin() { thin_from_ = usual_demands; }
  // To be called as demands are added, those of higher ranks first. Leaves out those that have the most before them;
  // the order stays.
  void thin(std::vector<Demand>& demands);

 private:
  std::size_t thin_from_ = usual_demands;
  std::vector<std::uint32_t> order_;  // kept for its memory
};

}  // namespace swapd::decide
