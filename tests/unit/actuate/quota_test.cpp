// A user's quota: what the providers of all of its waiters may use on loan in a window.
#include "fixture.h"

namespace swapd::actuate {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t somebody = 1000;
constexpr std::uint32_t somebody_else = 1001;

class QuotaTest : public ActuatorTest {
 protected:
  QuotaTest() {
    auto limited = options();
    limited.rules.user_time = milliseconds(900);
    limited.rules.user_window = milliseconds(1000);
    clock_.advance(std::chrono::hours(1));
    start(limited);
    for (const pid_t tid : {10, 11, 12}) scheduler_.add(tid, nice_of(0));
  }
  static Boost of_user(std::uint32_t user, pid_t tid, const SchedAttr& attr, pid_t requester) {
    Boost one = boost(tid, attr, requester);
    one.user = user;
    return one;
  }
};

TEST_F(QuotaTest, AllOfAUsersWaitersDrawOnOneTime) {
  const std::vector<Boost> all{of_user(somebody, 10, nice_of(-10), 900), of_user(somebody, 11, fifo(5), 901),
                               of_user(somebody_else, 12, nice_of(-10), 902)};
  const Time began = clock_.now();
  apply(all);
  clock_.advance(milliseconds(500));
  actuator().charge_user(somebody, milliseconds(500), clock_.now());
  EXPECT_EQ(attr(10), lent(nice_of(-10)));
  EXPECT_FALSE(actuator().rests(all[0], clock_.now()));
  actuator().charge_user(somebody, milliseconds(400), clock_.now());
  for (const pid_t tid : {10, 11}) {
    EXPECT_EQ(attr(tid), nice_of(0)) << tid;
    EXPECT_EQ(actuator().active(id(tid))->reason, Ineffective::quota);
  }
  EXPECT_TRUE(actuator().rests(all[0], clock_.now()));
  EXPECT_FALSE(actuator().rests(all[2], clock_.now()));
  EXPECT_EQ(attr(12), lent(nice_of(-10))) << "another user's";
  EXPECT_EQ(actuator().next_resume(), began + milliseconds(1000));
  clock_.set(began + milliseconds(999));
  apply(all);
  EXPECT_EQ(attr(10), nice_of(0));
  clock_.set(began + milliseconds(1000));
  apply(all);
  EXPECT_EQ(attr(10), lent(nice_of(-10)));
  EXPECT_EQ(attr(11), lent(fifo(5)));
}

// However short each of them was.
TEST_F(QuotaTest, LoansThatAreOverCountToo) {
  for (int i = 0; i < 90; ++i) {
    apply({of_user(somebody, 10, nice_of(-10), 900)});
    clock_.advance(milliseconds(10));
    apply({});
    actuator().charge_user(somebody, milliseconds(10), clock_.now());
  }
  apply({of_user(somebody, 11, fifo(5), 901)});
  EXPECT_EQ(attr(11), nice_of(0));
  EXPECT_EQ(actuator().active(id(11))->reason, Ineffective::quota);
}

TEST_F(QuotaTest, RootHasNone) {
  apply({boost(10, nice_of(-10))});
  actuator().charge_user(0, milliseconds(5000), clock_.now());
  EXPECT_EQ(attr(10), lent(nice_of(-10)));
}

TEST_F(QuotaTest, TheCeilingIsBesideIt) {
  auto both = options();
  both.rules.user_time = milliseconds(900);
  both.rules.ceiling_share = 0.5;
  both.rules.ceiling_window = milliseconds(100);
  start(both);
  apply({of_user(somebody, 10, fifo(5), 900)});
  EXPECT_EQ(actuator().charge(id(10), milliseconds(30), clock_.now()), milliseconds(20));
  EXPECT_EQ(actuator().charge(id(10), milliseconds(20), clock_.now()), std::nullopt);
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::ceiling);
}

}  // namespace
}  // namespace swapd::actuate
