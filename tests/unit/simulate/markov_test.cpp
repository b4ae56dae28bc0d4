// The chain of [DCS97 §3.1].
#include "simulate/markov.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace swapd::simulate {
namespace {

double log_rising(double a, unsigned k) { return std::lgamma(a + k) - std::lgamma(a); }  // (a)_k

// The closed form of the header.
std::vector<double> closed_form(const TwoJobChain& chain) {
  const double mates = chain.nodes - 1;
  const double a = chain.switches_b * mates / chain.messages_a, b = chain.switches_a * mates / chain.messages_b;
  std::vector<double> p;
  for (unsigned i = 0; i <= chain.nodes; ++i)
    p.push_back(std::exp(std::lgamma(chain.nodes + 1.0) - std::lgamma(i + 1.0) - std::lgamma(chain.nodes - i + 1.0) +
                         log_rising(b, i) + log_rising(a, chain.nodes - i) - log_rising(1, chain.nodes) +
                         i * std::log(chain.messages_b / chain.messages_a)));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& one : p) one /= sum;
  return p;
}

TwoJobChain equal(unsigned nodes, double messages, double switches) {
  return {nodes, messages, messages, switches, switches};
}

TEST(TwoJobChain, IsTheClosedForm) {
  for (const TwoJobChain& chain :
       {equal(64, 0.5, 0.005), TwoJobChain{64, 0.49, 0.5, 0.005, 0.005}, TwoJobChain{10, 2, 0.1, 0.3, 0.02}}) {
    const std::vector<double> p = stationary(chain), expected = closed_form(chain);
    ASSERT_EQ(p.size(), chain.nodes + 1);
    for (unsigned i = 0; i <= chain.nodes; ++i) EXPECT_NEAR(p[i], expected[i], 1e-9) << i;
  }
}

TEST(TwoJobChain, IsInBalance) {
  const TwoJobChain chain{64, 0.49, 0.5, 0.005, 0.004};
  const std::vector<double> p = stationary(chain);
  EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1, 1e-12);
  for (unsigned i = 0; i < chain.nodes; ++i) EXPECT_NEAR(p[i] * chain.up(i), p[i + 1] * chain.down(i + 1), 1e-12);
}

// Two nodes by hand: each process has one mate, so from state 1 it goes up at sA + mB and down at sB + mA.
TEST(TwoJobChain, HasTheRatesOfTwoNodes) {
  const TwoJobChain chain{2, 0.3, 0.5, 0.01, 0.02};
  EXPECT_DOUBLE_EQ(chain.up(0), 0.02);
  EXPECT_DOUBLE_EQ(chain.up(1), 0.51);
  EXPECT_DOUBLE_EQ(chain.down(1), 0.32);
  EXPECT_DOUBLE_EQ(chain.down(2), 0.04);
}

TEST(TwoJobChain, WithoutMessagesIsBinomial) {
  const std::vector<double> p = stationary(equal(4, 0, 0.1));
  const std::vector<double> coins = {1 / 16.0, 4 / 16.0, 6 / 16.0, 4 / 16.0, 1 / 16.0};
  for (unsigned i = 0; i <= 4; ++i) EXPECT_NEAR(p[i], coins[i], 1e-12);
}

TEST(TwoJobChain, OfTenThousandNodesIsFinite) {
  const std::vector<double> p = stationary({10'000, 0.25, 0.5, 0.001, 0.001});
  EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1, 1e-9);
}

// The numbers of the text.
TEST(Thesis, AllNodesRunOneJobForHalfOfTheTimeAtSeveralHundredMessagesASwitch) {
  const auto at = [](double messages_a_switch) {
    const std::vector<double> p = stationary(equal(64, 0.5, 0.5 / messages_a_switch));
    return p.front() + p.back();
  };
  EXPECT_NEAR(at(400), 0.5, 0.02);
  EXPECT_GT(at(600), 0.5);
  EXPECT_LT(at(100), 0.2);
}

TEST(Thesis, AtOneMessageASwitchHalfOfTheNodesRunEachJob) {
  const std::vector<double> p = stationary(equal(64, 0.5, 0.5));
  EXPECT_EQ(std::ranges::max_element(p) - p.begin(), 32);
  EXPECT_LT(p.front(), 1e-12);
  const double middle = std::accumulate(p.begin() + 24, p.begin() + 41, 0.0);
  EXPECT_GT(middle, 0.85);
}

TEST(Thesis, ALittleMoreMessagesAreMuchMoreTime) {  // [DCS97 fig. 3-3]
  const std::vector<double> p = stationary({64, 0.49, 0.5, 0.005, 0.005});
  EXPECT_NEAR(p.front(), 0.02, 0.005);
  EXPECT_NEAR(p.back() / p.front(), 3, 0.5);
}

}  // namespace
}  // namespace swapd::simulate
