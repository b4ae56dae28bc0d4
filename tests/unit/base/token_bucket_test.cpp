// The token bucket of [TAP08 §2.2–2.4].
#include "base/token_bucket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "unit/decide/start.h"

namespace swapd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// "Allows for infrequent bursts to go through at full speed."
TEST(TokenBucket, ABurstGoesAtOnceAndTheRestAtTheRate) {
  TokenBucket bucket({.rate = 1000, .burst = 100}, start);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(bucket.due(bucket.reserve(10, start), start), start) << i;
  EXPECT_EQ(bucket.count(start), 0);
  // The first that finds it empty waits for one token, the next for what that one takes besides.
  EXPECT_EQ(bucket.due(bucket.reserve(10, start), start), start + milliseconds(1));
  EXPECT_EQ(bucket.due(bucket.reserve(10, start), start), start + milliseconds(11));
  EXPECT_EQ(bucket.due(bucket.reserve(10, start), start), start + milliseconds(21));
}

// "The process continues as long as some tokens are available, which may result in a negative token count."
TEST(TokenBucket, ACallThatTakesMoreThanThereIsGoesAndTheNextOneWaitsForTheDebt) {
  TokenBucket bucket({.rate = 1000, .burst = 100}, start);
  EXPECT_EQ(bucket.due(bucket.reserve(5000, start), start), start);
  EXPECT_EQ(bucket.count(start), -4900);
  EXPECT_EQ(bucket.due(bucket.reserve(1, start), start), start + milliseconds(4901));
}

TEST(TokenBucket, WhatDidNotMoveIsGivenBackToThoseWhoWait) {
  TokenBucket bucket({.rate = 1000, .burst = 100}, start);
  (void)bucket.reserve(1100, start);
  const auto waits = bucket.reserve(10, start);
  EXPECT_EQ(bucket.due(waits, start), start + milliseconds(1001));
  bucket.settle(1100, 100, start);
  EXPECT_EQ(bucket.due(waits, start), start + milliseconds(1));
}

TEST(TokenBucket, WhatMovedBesidesIsOwed) {
  TokenBucket bucket({.rate = 1000, .burst = 100}, start);
  (void)bucket.reserve(1, start);
  bucket.settle(1, 600, start);
  EXPECT_EQ(bucket.count(start), -500);
}

TEST(TokenBucket, NothingIsKeptOfACallThatWasNotMade) {
  TokenBucket bucket({.rate = 1000, .burst = 100}, start);
  (void)bucket.reserve(70, start);
  bucket.settle(70, 0, start);
  EXPECT_EQ(bucket.count(start), 100);
}

// "If a token arrives when the bucket is full, the token is discarded."
TEST(TokenBucket, ItHoldsNoMoreThanItsBurst) {
  TokenBucket bucket({.rate = 1000, .burst = 100}, start);
  (void)bucket.reserve(50, start);
  EXPECT_EQ(bucket.count(start + milliseconds(20)), 70);
  EXPECT_EQ(bucket.count(start + seconds(1000)), 100);
}

TEST(TokenBucket, AnotherRateHoldsAtOnceForThoseWhoWait) {
  TokenBucket bucket({.rate = 1000, .burst = 100}, start);
  (void)bucket.reserve(10'100, start);
  const auto waits = bucket.reserve(1, start);
  EXPECT_EQ(bucket.due(waits, start), start + milliseconds(10'001));
  const Time later = start + seconds(5);
  bucket.change({.rate = 5001, .burst = 100}, later);
  EXPECT_EQ(bucket.due(waits, later), later + seconds(1));
  bucket.change({.rate = 1, .burst = 100}, later);
  EXPECT_EQ(bucket.due(waits, later), later + seconds(5001));
}

TEST(TokenBucket, ASmallerBurstTakesWhatIsTooMuch) {
  TokenBucket bucket({.rate = 1000, .burst = 100}, start);
  bucket.change({.rate = 1000, .burst = 10}, start);
  EXPECT_EQ(bucket.count(start), 10);
  bucket.change({.rate = 1000, .burst = 100}, start);
  EXPECT_EQ(bucket.count(start), 10);
}

TEST(TokenBucket, WithoutARateNothingGoesOnceItIsEmpty) {
  TokenBucket bucket({.rate = 0, .burst = 5}, start);
  EXPECT_EQ(bucket.due(bucket.reserve(5, start), start), start);
  const auto waits = bucket.reserve(5, start);
  EXPECT_EQ(bucket.due(waits, start + seconds(1000)), Time::max());
  bucket.change({.rate = 1, .burst = 5}, start + seconds(1000));
  EXPECT_EQ(bucket.due(waits, start + seconds(1000)), start + seconds(1001));
}

TEST(TokenBucket, AClockThatGoesBackBringsNothingAndTakesNothing) {
  TokenBucket bucket({.rate = 1000, .burst = 100}, start);
  (void)bucket.reserve(100, start);
  const auto waits = bucket.reserve(1, start + milliseconds(50));
  EXPECT_EQ(bucket.count(start), 49);
  EXPECT_EQ(bucket.due(waits, start - seconds(7)), start - seconds(7)) << "it had its token already";
  EXPECT_EQ(bucket.count(start + milliseconds(60)), 59);
}

// A second of 2^50 bytes after a year, and numbers beyond every range.
TEST(TokenBucket, HugeNumbersDoNotOverflow) {
  TokenBucket bucket({.rate = INT64_MAX, .burst = INT64_MAX}, start);
  EXPECT_EQ(bucket.rules(), (TokenBucket::Rules{TokenBucket::max_rate, TokenBucket::max_burst}));
  Time now = start;
  for (int i = 0; i < 100'000; ++i) {
    const auto ticket = bucket.reserve(INT64_MAX, now);
    const Time due = bucket.due(ticket, now);
    ASSERT_LE(now, due);
    ASSERT_LE(due, now + std::chrono::hours(1)) << i;
    bucket.settle(INT64_MAX, i % 2 == 0 ? INT64_MAX : 0, due);
    now = due + std::chrono::hours(2);
    ASSERT_EQ(bucket.count(now), TokenBucket::max_burst);
  }
  TokenBucket slow({.rate = 1, .burst = 1}, start);
  (void)slow.reserve(INT64_MAX, start);
  EXPECT_LE(slow.due(slow.reserve(1, start), start), start + std::chrono::hours(24 * 366));
}

TEST(TokenBucket, FractionsOfATokenAddUp) {
  TokenBucket bucket({.rate = 3, .burst = 1'000'000}, start);
  (void)bucket.reserve(1'000'000, start);
  for (int i = 1; i <= 3'000'000; ++i) (void)bucket.reserve(1, start + std::chrono::microseconds(i));
  EXPECT_EQ(bucket.count(start + seconds(3)), 9 - 3'000'000);
}

// The same with a queue, a list of who waits, and whole numbers of tokens: slow, and plain to see.
class Oracle {
 public:
  Oracle(TokenBucket::Rules rules, Time now) : rules_(rules), tokens_(parts(rules.burst)), now_(now) {}
  using Ticket = std::size_t;
  Ticket reserve(Tokens cost, Time now) {
    pass(now);
    callers_.push_back({cost, false});
    admit();
    return callers_.size() - 1;
  }
  void settle(Tokens cost, Tokens moved, Time now) {
    pass(now);
    tokens_ = std::min(tokens_ + parts(cost) - parts(moved), room());
    admit();
  }
  [[nodiscard]] bool went(Ticket ticket, Time now) {
    pass(now);
    return callers_[ticket].went;
  }

 private:
  __extension__ using Parts = __int128;  // of a token: 1e-9
  struct Caller {
    Tokens cost;
    bool went;
  };
  static Parts parts(Tokens tokens) { return static_cast<Parts>(tokens) * 1'000'000'000; }
  // Who waits has been counted already in the bucket under test, but not here.
  [[nodiscard]] Parts room() const {
    Parts room = parts(rules_.burst);
    for (std::size_t i = next_; i < callers_.size(); ++i) room += parts(callers_[i].cost);
    return room;
  }
  void pass(Time now) {
    for (; now_ < now; now_ += milliseconds(1)) {
      tokens_ = std::min(tokens_ + static_cast<Parts>(rules_.rate) * 1'000'000, room());
      admit();
    }
  }
  void admit() {
    for (; next_ < callers_.size() && tokens_ >= parts(1); ++next_) {
      callers_[next_].went = true;
      tokens_ -= parts(callers_[next_].cost);
    }
  }
  TokenBucket::Rules rules_;
  Parts tokens_;
  Time now_;
  std::vector<Caller> callers_;
  std::size_t next_ = 0;
};

TEST(TokenBucket, LetsTheSameOnesGoAtTheSameTimeAsAQueueWould) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](Tokens n) { return static_cast<Tokens>(random() % static_cast<unsigned>(n)); };
    const TokenBucket::Rules rules{.rate = 1000 * (1 + below(50)),
                                   .burst = 1 + below(5000)};  // whole tokens a millisecond
    TokenBucket bucket(rules, start);
    Oracle oracle(rules, start);
    struct Open {
      TokenBucket::Ticket ticket;
      Oracle::Ticket same;
      Tokens cost;
    };
    std::deque<Open> open;
    Time now = start;
    Tokens moved_in_all = 0, largest = 0;
    for (int i = 0; i < 400; ++i) {
      now += milliseconds(below(4));
      if (below(3) > 0) {
        const Tokens cost = 1 + below(2000);
        open.push_back({bucket.reserve(cost, now), oracle.reserve(cost, now), cost});
        largest = std::max(largest, cost);
      }
      bool earlier_waits = false;
      for (const Open& one : open) {
        const bool goes = bucket.due(one.ticket, now) <= now;
        ASSERT_EQ(goes, oracle.went(one.same, now)) << "seed " << seed << ", step " << i;
        ASSERT_FALSE(goes && earlier_waits) << "out of turn";
        earlier_waits = earlier_waits || !goes;
      }
      if (!open.empty() && bucket.due(open.front().ticket, now) <= now) {
        const Tokens moved = 1 + below(open.front().cost);
        bucket.settle(open.front().cost, moved, now);
        oracle.settle(open.front().cost, moved, now);
        open.pop_front();
        moved_in_all += moved;
      }
    }
    // Never more than the burst, what the rate brings, and one block.
    const auto passed = std::chrono::duration_cast<milliseconds>(now - start).count();
    EXPECT_LE(moved_in_all, rules.burst + rules.rate / 1000 * passed + largest);
  }
}

TEST(TokenBucket, ForgivesWhatIsOwedAboveSoMuch) {
  TokenBucket bucket({.rate = 1000, .burst = 1000}, start);
  (void)bucket.reserve(11'000, start);
  EXPECT_EQ(bucket.count(start), -10'000);
  bucket.cap_debt(2000, start);
  EXPECT_EQ(bucket.count(start), -2000);
  bucket.cap_debt(3000, start);
  EXPECT_EQ(bucket.count(start), -2000);
}

}  // namespace
}  // namespace swapd::test
