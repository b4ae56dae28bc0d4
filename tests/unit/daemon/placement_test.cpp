#include "engine/engine_affinity.h"

#include <gtest/gtest.h>

#include <array>

namespace swapd::daemon {
namespace {

cpu_set_t cpus(std::initializer_list<std::size_t> list) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::size_t cpu : list) CPU_SET(cpu, &set);
  return set;
}
bool same(const cpu_set_t& a, const cpu_set_t& b) { return CPU_EQUAL(&a, &b) != 0; }

TEST(EngineAffinity, the_engine_keeps_off_the_cpus_of_those_who_matter) {
  EXPECT_TRUE(same(keep_off(cpus({0, 1, 2}), std::array{0}), cpus({1, 2})));
  EXPECT_TRUE(same(keep_off(cpus({0, 1, 2}), std::array{0, 2}), cpus({1})));
  EXPECT_TRUE(same(keep_off(cpus({0, 1}), std::array{-1}), cpus({0, 1}))) << "nobody knows where it was";
}

TEST(EngineAffinity, where_all_cpus_are_theirs_it_keeps_off_the_favoured_one_or_stays) {
  EXPECT_TRUE(same(keep_off(cpus({0, 1}), std::array{1, 0}), cpus({0})));
  EXPECT_TRUE(same(keep_off(cpus({0}), std::array{0}), cpus({0})));
}

TEST(EngineAffinity, it_moves_only_from_a_cpu_of_theirs_and_not_all_the_time) {
  EngineAffinity placement(cpus({0, 1}));
  cpu_set_t to;
  Time now{std::chrono::seconds(1)};
  EXPECT_FALSE(placement.move(1, std::array{0}, now, to)) << "out of their way already";
  EXPECT_TRUE(placement.move(0, std::array{0}, now, to));
  EXPECT_TRUE(same(to, cpus({1})));
  EXPECT_FALSE(placement.move(1, std::array{1}, now + std::chrono::milliseconds(10), to)) << "they have moved too";
  EXPECT_TRUE(placement.move(1, std::array{1}, now + std::chrono::milliseconds(110), to));
  EXPECT_TRUE(same(to, cpus({0})));
  EngineAffinity alone(cpus({0}));
  EXPECT_FALSE(alone.move(0, std::array{0}, now, to)) << "nowhere to go";
}

TEST(EngineAffinity, more_busy_cpus_than_all_of_its_own_change_nothing) {
  const EngineAffinity placement(cpus({0, 1, 2}));
  EXPECT_FALSE(placement.has_no_other(std::array{0, 2, 5}));
  EXPECT_TRUE(placement.has_no_other(std::array{0, 2, 1}));
  EXPECT_TRUE(
      same(keep_off(cpus({0, 1, 2}), std::array{0, 2, 1}), keep_off(cpus({0, 1, 2}), std::array{0, 2, 1, 5, 0})));
}

TEST(EngineAffinity, it_rests_after_a_move) {
  EngineAffinity placement(cpus({0, 1}));
  cpu_set_t to;
  const Time now{std::chrono::seconds(1)};
  EXPECT_FALSE(placement.rests(now));
  EXPECT_TRUE(placement.move(0, std::array{0}, now, to));
  EXPECT_TRUE(placement.rests(now + std::chrono::milliseconds(99)));
  EXPECT_FALSE(placement.rests(now + std::chrono::milliseconds(100)));
}

}  // namespace
}  // namespace swapd::daemon
