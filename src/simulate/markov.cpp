#include "simulate/markov.h"

#include <algorithm>
#include <cmath>

namespace swapd::simulate {

double TwoJobChain::up(unsigned state) const {
  return (nodes - state) * (switches_a + state * messages_b / (nodes - 1));
}

double TwoJobChain::down(unsigned state) const {
  return state * (switches_b + (nodes - state) * messages_a / (nodes - 1));
}

std::vector<double> stationary(const TwoJobChain& chain) {
  std::vector<double> logs(chain.nodes + 1, 0);
  for (unsigned i = 0; i < chain.nodes; ++i)
    logs[i + 1] = logs[i] + std::log(chain.up(i)) - std::log(chain.down(i + 1));
  const double largest = *std::ranges::max_element(logs);
  std::vector<double> probabilities(logs.size());
  std::ranges::transform(logs, probabilities.begin(), [&](double log) { return std::exp(log - largest); });
  double sum = 0;
  for (const double p : probabilities) sum += p;
  for (double& p : probabilities) p /= sum;
  return probabilities;
}

}  // namespace swapd::simulate
