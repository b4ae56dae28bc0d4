// The birth-death chain of two parallel jobs under "always-schedule" coscheduling: each arriving message has its
// process run at once [DCS97 §3.1, fig. 3-1 to 3-3]. Pure.
//
// In state i, i nodes of N run job B and N - i run job A. A node leaves its job spontaneously at the rate s of that
// job. A process that runs sends messages at the rate m of its job, each to one of the N - 1 other processes of the job
// with the same probability, and a message that finds its process without the CPU moves that node. So
//   up(i)   = (N - i) (sA + i mB / (N - 1))          i to i + 1
//   down(i) = i (sB + (N - i) mA / (N - 1))          i to i - 1
// and with aB = sA (N - 1) / mB, aA = sB (N - 1) / mA the stationary probabilities are
//   p(i) ~ C(N, i) (aB)_i (aA)_(N-i) (mB / mA)^i     where (a)_k = a (a + 1) ... (a + k - 1),
// for equal rates the beta-binomial distribution: heaped at both ends where a < 1, binomial where a is large.
#pragma once

#include <vector>

namespace swapd::simulate {

struct TwoJobChain {
  unsigned nodes = 64;                    // N, at least 2
  double messages_a = 0, messages_b = 0;  // m: messages of a running process a cycle
  double switches_a = 0, switches_b = 0;  // s: spontaneous switches of a running process a cycle, above 0
  [[nodiscard]] double up(unsigned state) const;
  [[nodiscard]] double down(unsigned state) const;
};

// The stationary probabilities of the states 0 to N. Exact but for rounding: products of up / down, in logarithms.
[[nodiscard]] std::vector<double> stationary(const TwoJobChain& chain);

}  // namespace swapd::simulate
