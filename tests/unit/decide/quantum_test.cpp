// The length of the turns of threads that wait for mates without a CPU.
#include "decide/coscheduling/quantum.h"

#include <gmock/gmock.h>

namespace swapd::test {
namespace {

using decide::Quantum;
using namespace std::chrono_literals;

class QuantumTest : public testing::Test {
 protected:
  void windows(int count, double spun, bool alone = true) {
    for (int i = 0; i < count; ++i) quantum.end_window(spun, alone, now += 125ms);
  }
  Quantum quantum;
  Time now{1h};
};

TEST_F(QuantumTest, GrowsShorterWhileMuchTimeIsSpentWaiting) {
  quantum.begin(true);
  EXPECT_EQ(quantum.length(), 100us);
  windows(2, 0.5);
  EXPECT_EQ(quantum.length(), 50us);
  windows(20, 0.5);
  EXPECT_EQ(quantum.length(), 50us) << "each turn costs";
}

TEST_F(QuantumTest, GrowsLongerWhereHardlyAnyIs) {
  quantum.begin(true);
  windows(2, 0.01);
  EXPECT_EQ(quantum.length(), 200us);
  windows(40, 0.01);
  EXPECT_EQ(quantum.length(), 1ms);
}

TEST_F(QuantumTest, StaysWhereLittleIs) {
  quantum.begin(true);
  windows(40, 0.1);
  EXPECT_EQ(quantum.length(), 100us);
}

TEST_F(QuantumTest, IsLongerBesideOtherPrograms) {
  quantum.begin(false);
  EXPECT_EQ(quantum.length(), 500us);
  windows(20, 0.5, false);
  EXPECT_EQ(quantum.length(), 500us) << "they pay for the turns, too";
}

TEST_F(QuantumTest, IsInVainForAProgramThatWaitsForNoMate) {
  quantum.begin(true);
  windows(23, 1);
  EXPECT_FALSE(quantum.rests(now));
  windows(1, 1);
  EXPECT_TRUE(quantum.rests(now));
  EXPECT_TRUE(quantum.rests(now + 9s));
  EXPECT_FALSE(quantum.rests(now + 10s));
  now += 10s;
  quantum.begin(true);
  windows(24, 1);
  EXPECT_TRUE(quantum.rests(now + 19s)) << "twice as long each time";
  now += 20s;
  quantum.begin(true);
  windows(8, 0.9);
  windows(40, 1);
  EXPECT_FALSE(quantum.rests(now + 10s)) << "it had got on in between";
}

}  // namespace
}  // namespace swapd::test
