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

TEST_F(QuantumTest, IsShortAtFirstAndGrowsWhereHardlyAnyTimeIsSpentWaiting) {
  quantum.begin(true);
  EXPECT_EQ(quantum.length(), 50us);
  windows(8, 0.01);
  EXPECT_EQ(quantum.length(), 100us);
  windows(80, 0.01);
  EXPECT_EQ(quantum.length(), 1ms);
}

TEST_F(QuantumTest, GrowsShorterAgainWhileMuchIs) {
  quantum.begin(true);
  windows(80, 0.01);
  windows(80, 0.5);
  EXPECT_EQ(quantum.length(), 50us) << "and no shorter: each turn costs";
}

TEST_F(QuantumTest, StaysWhereLittleIs) {
  quantum.begin(true);
  windows(16, 0.01);
  EXPECT_EQ(quantum.length(), 200us);
  windows(80, 0.06);
  EXPECT_EQ(quantum.length(), 200us);
}

TEST_F(QuantumTest, IsNotMovedByOneWindowThatIsUnlikeTheOthers) {
  quantum.begin(true);
  windows(16, 0.01);
  windows(20, 0.06);
  windows(1, 0.3);
  windows(20, 0.06);
  EXPECT_EQ(quantum.length(), 200us);
}

TEST_F(QuantumTest, IsLongerBesideOtherPrograms) {
  quantum.begin(false);
  EXPECT_EQ(quantum.length(), 500us);
  windows(20, 0.5, false);
  EXPECT_EQ(quantum.length(), 500us) << "they pay for the turns, too";
}

TEST_F(QuantumTest, IsInVainForAProgramThatWaitsForNoMate) {
  quantum.begin(true);
  windows(47, 1);
  EXPECT_FALSE(quantum.rests(now));
  windows(1, 1);
  EXPECT_TRUE(quantum.rests(now));
  EXPECT_TRUE(quantum.rests(now + 9s));
  EXPECT_FALSE(quantum.rests(now + 10s));
  now += 10s;
  quantum.begin(true);
  windows(48, 1);
  EXPECT_TRUE(quantum.rests(now + 19s)) << "twice as long each time";
  now += 20s;
  quantum.begin(true);
  windows(8, 0.9);
  windows(100, 1);
  EXPECT_FALSE(quantum.rests(now + 10s)) << "it had got on in between";
}

}  // namespace
}  // namespace swapd::test
