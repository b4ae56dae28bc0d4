// When a thread waits too often to be told of each wait, and when no more.
#include "observe/bpf/wait_rate.h"

#include <gmock/gmock.h>

namespace swapd::test {
namespace {

using observe::WaitRate;
using std::chrono::microseconds;
using std::chrono::milliseconds;

const WaitRate::Kind epoll{.call = 232, .arg = 5}, read_from{.call = 0, .arg = 7}, futexes{.call = 202};

class WaitRateTest : public testing::Test {
 protected:
  WaitRateTest() { (void)rate.set_patience(milliseconds(1)); }
  // So many told waits, one each `every`. True: the thread has become patient.
  bool waits(int count, Duration every, const WaitRate::Kind& kind = epoll) {
    bool became = false;
    for (int i = 0; i < count; ++i) {
      became = rate.told(kind, now) || became;
      now += every;
    }
    return became;
  }
  WaitRate rate;
  Time now{milliseconds(1000)};
};

TEST_F(WaitRateTest, AThreadThatWaitsMoreOftenThanOnceInItsPatienceIsPatient) {
  EXPECT_TRUE(waits(WaitRate::min_waits + 1, microseconds(500)));
  EXPECT_TRUE(rate.patient());
}

TEST_F(WaitRateTest, OneThatWaitsLessOftenIsToldOfEachWait) { EXPECT_FALSE(waits(1000, microseconds(1100))); }

TEST_F(WaitRateTest, AFewWaitsAreNoRate) { EXPECT_FALSE(waits(WaitRate::min_waits, microseconds(1))); }

// To tell of sixteen waits of each of two hundred threads would take swapd further over its budget.
TEST_F(WaitRateTest, TheLongerThePatienceTheFewerWaitsAreARate) {
  (void)rate.set_patience(milliseconds(4));
  EXPECT_FALSE(waits(WaitRate::min_waits / 4, microseconds(1)));
  EXPECT_TRUE(waits(1, microseconds(1)));
  (void)rate.set_patience(milliseconds(64));
  EXPECT_FALSE(waits(WaitRate::fewest_waits, microseconds(1), read_from));
  EXPECT_TRUE(waits(1, microseconds(1), read_from));
}

TEST_F(WaitRateTest, AFewWaitsAfterAPauseAreNoRateEither) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(waits(WaitRate::min_waits, microseconds(1)));
    now += WaitRate::max_window + milliseconds(1);
  }
}

TEST_F(WaitRateTest, WithoutPatienceEachWaitIsTold) {
  (void)rate.set_patience({});
  EXPECT_FALSE(waits(1000, microseconds(1)));
}

TEST_F(WaitRateTest, ItStaysPatientWhileItWaitsAsOften) {
  ASSERT_TRUE(waits(100, microseconds(100)));
  std::uint32_t count = 100;
  for (int i = 0; i < 100; ++i) {
    now += milliseconds(10);
    count += 10;
    EXPECT_FALSE(rate.counted(count, now));
  }
}

TEST_F(WaitRateTest, ItIsPatientNoMoreWhenItWaitsLessThanHalfAsOften) {
  ASSERT_TRUE(waits(100, microseconds(100)));
  EXPECT_FALSE(rate.counted(100, now));
  now += milliseconds(50);
  EXPECT_TRUE(rate.counted(124, now));
  EXPECT_FALSE(rate.patient());
}

TEST_F(WaitRateTest, ACountThatGoesRoundIsARateStill) {
  ASSERT_TRUE(waits(100, microseconds(100)));
  EXPECT_FALSE(rate.counted(0xfffffff0, now));
  now += milliseconds(50);
  EXPECT_FALSE(rate.counted(0x20, now));
}

TEST_F(WaitRateTest, ALongerPatienceTakesRarerWaits) {
  EXPECT_FALSE(waits(100, milliseconds(4)));
  (void)rate.set_patience(milliseconds(8));
  EXPECT_TRUE(waits(100, milliseconds(4)));
}

TEST_F(WaitRateTest, ARareWaitOfAnotherKindIsToldStill) {
  ASSERT_TRUE(waits(100, microseconds(100)));
  EXPECT_THAT(rate.often(), testing::ElementsAre(epoll));
  EXPECT_FALSE(waits(100, milliseconds(2), read_from));
  EXPECT_THAT(rate.often(), testing::ElementsAre(epoll));
}

TEST_F(WaitRateTest, EachKindThatComesOftenIsOneOfThem) {
  ASSERT_TRUE(waits(100, microseconds(100)));
  ASSERT_TRUE(waits(100, microseconds(100), futexes));
  EXPECT_THAT(rate.often(), testing::ElementsAre(epoll, futexes));
}

TEST_F(WaitRateTest, ManyKindsThatAreEachRareAreNone) {
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_FALSE(waits(1, microseconds(100), {.call = 0, .arg = i % 10}));
}

TEST_F(WaitRateTest, OneOfThemThatIsToldBecauseItLastedIsNoNews) {
  ASSERT_TRUE(waits(100, microseconds(100)));
  EXPECT_FALSE(waits(100, microseconds(100)));
}

// It had become often while patience was long.
TEST_F(WaitRateTest, AKindThatIsRareForAShorterPatienceIsToldAgain) {
  ASSERT_TRUE(waits(100, microseconds(100)));
  (void)rate.set_patience(milliseconds(64));
  ASSERT_TRUE(waits(100, milliseconds(30), read_from));
  EXPECT_FALSE(rate.set_patience(milliseconds(16)));
  EXPECT_THAT(rate.often(), testing::ElementsAre(epoll, read_from)) << "within a factor of two nothing changes";
  EXPECT_TRUE(rate.set_patience(milliseconds(15)));
  EXPECT_THAT(rate.often(), testing::ElementsAre(epoll));
  EXPECT_FALSE(rate.often(read_from));
}

TEST_F(WaitRateTest, PatienceThatIsTakenAwayEndsIt) {
  ASSERT_TRUE(waits(100, microseconds(100)));
  EXPECT_TRUE(rate.set_patience({}));
  EXPECT_FALSE(rate.patient());
  EXPECT_FALSE(rate.set_patience({}));
}

}  // namespace
}  // namespace swapd::test
