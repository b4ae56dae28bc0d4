// Very many demands for the same threads: the best of each payer are kept.
#include "decide/donation/alternatives.h"

#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::Alternatives;
using decide::Demand;
using decide::RunAs;

class AlternativesTest : public testing::Test {
 protected:
  static ThreadId thread(int number) { return {100 + number, 1}; }
  static RunAs wanted(ThreadId provider, int requester, std::uint32_t user = 0, bool withheld = false) {
    RunAs run{.thread = provider,
              .attr = nice(-5),
              .cause = {"donation", thread(requester), r1},
              .payer = {.user = user},
              .second_best = {}};
    run.withheld = withheld;
    return run;
  }
  // As many as there may be without any being left out, and one more: each requester wants each provider.
  static std::vector<Demand> many(int providers) {
    std::vector<Demand> demands;
    for (int requester = 0; demands.size() <= Alternatives::usual_demands; ++requester)
      for (int provider = 0; provider < providers; ++provider)
        demands.emplace_back(wanted(thread(1000 + provider), requester));
    return demands;
  }
  static std::vector<pid_t> requesters_for(const std::vector<Demand>& demands, ThreadId provider) {
    std::vector<pid_t> out;
    for (const Demand& demand : demands)
      if (const auto& run = std::get<RunAs>(demand); run.thread == provider) out.push_back(run.cause.on_behalf_of.tid);
    return out;
  }
  Alternatives alternatives;
};

TEST_F(AlternativesTest, UpToTheUsualNumberNothingIsLeftOut) {
  auto demands = many(1);
  demands.pop_back();
  alternatives.thin(demands);
  EXPECT_EQ(demands.size(), Alternatives::usual_demands);
}

TEST_F(AlternativesTest, OfEachThreadTheFirstStayInTheirOrder) {
  auto demands = many(2);
  alternatives.thin(demands);
  EXPECT_THAT(requesters_for(demands, thread(1000)), testing::ElementsAre(100, 101, 102, 103));
  EXPECT_THAT(requesters_for(demands, thread(1001)), testing::SizeIs(Alternatives::max_of_a_payer));
  EXPECT_EQ(std::get<RunAs>(demands[0]).thread, thread(1000));
  EXPECT_EQ(std::get<RunAs>(demands[1]).thread, thread(1001)) << "the order of all";
}

// Its budget may last where all others rest.
TEST_F(AlternativesTest, EachUserHasItsOwn) {
  auto demands = many(1);
  demands.emplace_back(wanted(thread(1000), 3000, 1001));
  alternatives.thin(demands);
  EXPECT_THAT(requesters_for(demands, thread(1000)), testing::Contains(3100));
}

TEST_F(AlternativesTest, WhatIsWithheldTakesNobodysPlace) {
  auto demands = many(1);
  for (std::size_t at = 0; at + 1 < demands.size(); ++at) std::get<RunAs>(demands[at]).withheld = true;
  const pid_t last = std::get<RunAs>(demands.back()).cause.on_behalf_of.tid;
  alternatives.thin(demands);
  EXPECT_THAT(requesters_for(demands, thread(1000)), testing::ElementsAre(100, last));
}

TEST_F(AlternativesTest, DemandsOfOtherKindsStay) {
  auto demands = many(1);
  demands.emplace_back(decide::GiveWay{.thread = thread(1000), .on_behalf_of = thread(1)});
  alternatives.thin(demands);
  EXPECT_TRUE(std::holds_alternative<decide::GiveWay>(demands.back()));
}

// A thousand requesters, each of which wants a hundred threads: a list of a hundred thousand never stands.
TEST_F(AlternativesTest, TheListStaysShortWhileItGrows) {
  std::vector<Demand> demands;
  alternatives.begin();
  std::size_t most = 0;
  for (int requester = 0; requester < 1000; ++requester) {
    for (int provider = 0; provider < 100; ++provider) demands.emplace_back(wanted(thread(5000 + provider), requester));
    most = std::max(most, demands.size());
    alternatives.thin(demands);
  }
  EXPECT_LE(most, 2 * 100 * Alternatives::max_of_a_payer + 100);
}

}  // namespace
}  // namespace swapd::test
