// Donations to real threads: what the kernel says they have, before, during and after.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <thread>

#include "process.h"
#include "sys/sched/groups.h"
#include "sys/sched/scheduler.h"

namespace swapd::actuate {
namespace {

class LendingTest : public LinuxTest {
 protected:
  void SetUp() override {
    LinuxTest::SetUp();
    if (IsSkipped()) return;
    actuator_.emplace(scheduler_, groups_, options());
    actuator_->on_outcome([this](const Outcome& outcome) { outcomes_.push_back(outcome); });
    ASSERT_TRUE(actuator_->recover().ok());
  }
  void apply(const std::vector<Boost>& boosts) { actuator_->apply(boosts, clock_.now()); }
  // A waiter's at FIFO 50.
  static Boost with_second_best(const Process& process) {
    Boost asked = boost(process, realtime(SchedPolicy::fifo, 49));
    asked.second_best = lent(nice_of(-20));
    return asked;
  }
  SchedAttr attr(const Process& process) { return scheduler_.get(process.pid()).value_or(nice_of(-99)); }

  sys::LinuxScheduler scheduler_;
  sys::LinuxGroups groups_;
  std::optional<Actuator> actuator_;
  std::vector<Outcome> outcomes_;
};

TEST_F(LendingTest, EachClassIsLentAndTheOwnComesBack) {
  const SchedAttr flagged = lent(realtime(SchedPolicy::rr, 7));
  SchedAttr batch = nice_of(9);
  batch.policy = SchedPolicy::batch;
  SchedAttr sliced = nice_of(2);
  sliced.runtime_ns = 12'000'000;
  SchedAttr idle = nice_of(6);
  idle.policy = SchedPolicy::idle;
  for (const SchedAttr& own : {nice_of(0), nice_of(12), flagged, realtime(SchedPolicy::fifo, 3), batch, sliced, idle}) {
    const Process child({.attr = own});
    const SchedAttr before = attr(child);
    ASSERT_EQ(before.policy, own.policy);
    for (const SchedAttr& loan : {realtime(SchedPolicy::fifo, 30), realtime(SchedPolicy::rr, 31), nice_of(-8)}) {
      apply({boost(child, loan)});
      if (rank(loan) > rank(own)) {
        EXPECT_EQ(attr(child).policy, loan.policy);
        EXPECT_TRUE(attr(child).reset_on_fork);
        EXPECT_EQ(rank(attr(child)), rank(loan));
      } else {
        EXPECT_EQ(attr(child), before);
      }
    }
    apply({});
    EXPECT_EQ(attr(child), before);
  }
}

TEST_F(LendingTest, ARenicedThreadKeepsNothingOfTheDonation) {
  const Process child({.attr = nice_of(0)});
  apply({boost(child, nice_of(-8))});
  ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(child.pid()), 3), 0);
  apply({});
  EXPECT_EQ(attr(child), nice_of(3));
}

TEST_F(LendingTest, ADeadlineDonorLendsFifoAtTheCeiling) {
  SchedAttr deadline;
  deadline.policy = SchedPolicy::deadline;
  deadline.runtime_ns = 1'000'000;
  deadline.deadline_ns = deadline.period_ns = 20'000'000;
  const Process donor({.attr = deadline});
  const Process child({});
  const Boost loan = boost(child, lent_by(attr(donor), {}));
  apply({loan});
  EXPECT_EQ(attr(child), lent(realtime(SchedPolicy::fifo, 90)));
  apply({});
  EXPECT_EQ(attr(child), nice_of(0));
  apply({boost(donor, realtime(SchedPolicy::fifo, 90))});
  EXPECT_EQ(attr(donor), deadline) << "a deadline thread is never touched";
}

TEST_F(LendingTest, ARealReniceIsRespected) {
  const Process hidden({});
  const Process plain({});
  apply({boost(hidden, realtime(SchedPolicy::fifo, 20)), boost(plain, nice_of(-5))});
  ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(hidden.pid()), 11), 0);
  ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(plain.pid()), -9), 0);
  apply({});
  EXPECT_EQ(attr(hidden), nice_of(11));
  EXPECT_EQ(attr(plain).nice, -9);
}

TEST_F(LendingTest, AnOrdinaryUsersThreadCannotKeepALoan) {
  const Process greedy({}, [](int report) {
    if (::setresuid(65534, 65534, 65534) != 0) return;
    if (::write(report, "u", 1) != 1) return;
    while (::sched_getscheduler(0) == SCHED_OTHER) ::sched_yield();
    const sched_param less{.sched_priority = 47};
    const int kept = ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &less);
    if (::write(report, kept == 0 ? "k" : "?", 1) != 1) return;
    for (;;) ::pause();
  });
  ASSERT_EQ(greedy.report(), "u");
  apply({boost(greedy, realtime(SchedPolicy::fifo, 49))});
  ASSERT_EQ(greedy.report(), "k");
  apply({});
  EXPECT_EQ(attr(greedy), nice_of(0));
}

TEST_F(LendingTest, SetpriorityToZeroIsNotTheLoan) {
  const Process child({.attr = nice_of(5)});
  apply({boost(child, nice_of(-5))});
  ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(child.pid()), 0), 0);
  apply({});
  EXPECT_EQ(attr(child).nice, 0);
}

TEST_F(LendingTest, AChildForkedUnderTheLoanIsAdopted) {
  for (const SchedAttr& loan : {realtime(SchedPolicy::fifo, 20), nice_of(-5), nice_of(3)}) {
    std::array<int, 2> go{};
    ASSERT_EQ(::pipe(go.data()), 0);
    const Process parent({.attr = nice_of(15)}, [&](int report) {
      char byte = 0;
      if (::write(report, "r", 1) != 1 || ::read(go[0], &byte, 1) != 1) return;
      const pid_t child = ::fork();
      if (child == 0) {
        ::alarm(20);
        ::close(go[1]);
        while (::read(go[0], &byte, 1) > 0) continue;  // until the test closes its end
        ::_exit(0);
      }
      const std::string text = std::to_string(child);
      (void)!::write(report, text.data(), text.size());
      ::close(go[1]);
      while (::read(go[0], &byte, 1) > 0) continue;
    });
    ASSERT_EQ(parent.report(), "r");
    apply({boost(parent, loan)});
    ASSERT_EQ(::write(go[1], "g", 1), 1);
    const pid_t tid = std::stoi("0" + parent.report());
    ASSERT_GT(tid, 0);
    const SchedAttr born = scheduler_.get(tid).value_or(nice_of(-99));
    EXPECT_FALSE(born.reset_on_fork);
    EXPECT_EQ(born.nice, std::max<int>(0, loan.nice));
    apply({});
    actuator_->adopt_child({tid, 1}, parent.id());
    EXPECT_EQ(scheduler_.get(tid).value_or(nice_of(-99)), nice_of(15));
    ::close(go[0]);
    ::close(go[1]);
  }
}

// As the kernel has them: "ionice -c idle" of a program that an important one waits for.
TEST_F(LendingTest, AWorseIoPriorityIsLaidAsideMeanwhile) {
  constexpr int none = 0, idle = 3 << 13, best_effort_0 = 2 << 13;  // ioprio_set(2)
  const Process background({.attr = nice_of(15)}), plain({.attr = nice_of(15)}), favoured({.attr = nice_of(15)});
  ASSERT_TRUE(scheduler_.set_io_priority(background.pid(), idle).ok());
  ASSERT_TRUE(scheduler_.set_io_priority(favoured.pid(), best_effort_0).ok());
  const auto io = [&](const Process& process) { return scheduler_.io_priority(process.pid()).value_or(-1); };
  apply({boost(background, nice_of(-5)), boost(plain, nice_of(-5)), boost(favoured, nice_of(-5))});
  EXPECT_EQ(io(background) >> 13, none);
  EXPECT_EQ(io(favoured), best_effort_0);
  apply({});
  EXPECT_EQ(io(background), idle);
  EXPECT_EQ(io(plain) >> 13, none);
  EXPECT_EQ(io(favoured), best_effort_0);
}

TEST_F(LendingTest, AProviderKilledInMidDonationLeavesNothing) {
  const Process neighbour({.own_session = false});
  const auto before = groups_.autogroup(neighbour.pid());
  for (int i = 0; i < 20; ++i) {
    Process child({});
    apply({boost(child, i % 2 == 0 ? realtime(SchedPolicy::fifo, 20) : nice_of(-7))});
    ASSERT_TRUE(actuator_->base(child.id()));
    const ThreadId id = child.id();
    child.kill();
    actuator_->forget(id);
    EXPECT_TRUE(actuator_->active().empty());
  }
  const auto group = groups_.autogroup(neighbour.pid());
  if (group.ok() && before.ok()) {
    EXPECT_EQ(group->nice, before->nice) << "the session's group was lent to";
  }
}

TEST_F(LendingTest, AGroupWithoutRealTimeRuntimeIsTheReason) {
  const CpuGroupV1 group("rt");
  if (!group.valid()) GTEST_SKIP() << "needs a v1 cpu controller";
  if (group.read("cpu.rt_runtime_us") != "0") GTEST_SKIP() << "needs RT_GROUP_SCHED";
  Process child({});
  ASSERT_TRUE(group.write("tasks", std::to_string(child.pid())));
  apply({boost(child, realtime(SchedPolicy::fifo, 20))});
  ASSERT_TRUE(actuator_->active(child.id()));
  EXPECT_EQ(actuator_->active(child.id())->reason, Ineffective::rt_group);
  EXPECT_EQ(attr(child), nice_of(0));
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_EQ(outcomes_[0].what, Outcome::What::ineffective);
  child.kill();
}

TEST_F(LendingTest, WhereTheKernelRefusesRealTimeANiceValueIsLent) {
  const CpuGroupV1 group("rt-second");
  if (!group.valid()) GTEST_SKIP() << "needs a v1 cpu controller";
  if (group.read("cpu.rt_runtime_us") != "0") GTEST_SKIP() << "needs RT_GROUP_SCHED";
  Process child({.attr = nice_of(2)});
  ASSERT_TRUE(group.write("tasks", std::to_string(child.pid())));
  apply({with_second_best(child)});
  ASSERT_TRUE(actuator_->active(child.id()));
  EXPECT_EQ(actuator_->active(child.id())->limited, Ineffective::rt_group);
  EXPECT_EQ(attr(child).policy, SchedPolicy::other);
  EXPECT_EQ(attr(child).nice, -20);
  apply({});
  EXPECT_EQ(attr(child), nice_of(2));
  child.kill();
}

// rtkit sets 200 ms for every process that it gives real-time threads.
TEST_F(LendingTest, AProcessWithALimitOnRealTimeIsNotKilledForALoan) {
  const rlimit limit{50'000, 50'000};  // microseconds
  Process limited({.spin = true});
  Process later({.spin = true});
  ASSERT_EQ(::prlimit(limited.pid(), RLIMIT_RTTIME, &limit, nullptr), 0);
  const std::vector<Boost> loans = {with_second_best(limited), with_second_best(later)};
  apply(loans);
  EXPECT_EQ(attr(limited).policy, SchedPolicy::other);
  EXPECT_EQ(attr(later).policy, SchedPolicy::fifo);
  ASSERT_EQ(::prlimit(later.pid(), RLIMIT_RTTIME, &limit, nullptr), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(21));
  apply(loans);
  EXPECT_EQ(attr(later).policy, SchedPolicy::other) << "the limit came under the loan";
  for (const Process* child : {&limited, &later}) {
    const Duration before = child->cpu();
    const Time end = clock_.now() + std::chrono::seconds(5);
    while (child->cpu() - before < std::chrono::milliseconds(150) && clock_.now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_GE(child->cpu() - before, std::chrono::milliseconds(150));
    EXPECT_EQ(::kill(child->pid(), 0), 0);
    int status = 0;
    EXPECT_EQ(::waitpid(child->pid(), &status, WNOHANG), 0) << "it has been ended";
  }
  apply({});
  EXPECT_EQ(attr(limited), nice_of(0));
  EXPECT_EQ(attr(later), nice_of(0));
}

TEST_F(LendingTest, ADeadlineThreadIsNeverChanged) {
  const SchedAttr own{
      .policy = SchedPolicy::deadline, .runtime_ns = 1'000'000, .deadline_ns = 20'000'000, .period_ns = 20'000'000};
  const Process child({});
  if (const auto set = scheduler_.set(child.pid(), own); !set.ok()) GTEST_SKIP() << set.error().text();
  const SchedAttr before = attr(child);
  ASSERT_EQ(before.policy, SchedPolicy::deadline);
  for (const SchedAttr& loan : {realtime(SchedPolicy::fifo, 90), nice_of(-20)}) {
    apply({boost(child, loan)});
    EXPECT_EQ(attr(child), before);
  }
  apply({});
  EXPECT_EQ(attr(child), before);
  EXPECT_TRUE(outcomes_.empty());
}

// As renice(1): every class and flag stays, and a real-time thread keeps the value for later.
TEST_F(LendingTest, ANiceValueLeavesTheClass) {
  for (const SchedPolicy policy : {SchedPolicy::batch, SchedPolicy::idle, SchedPolicy::rr}) {
    SchedAttr own = policy == SchedPolicy::rr ? realtime(policy, 20) : nice_of(3);
    own.policy = policy;
    own.reset_on_fork = true;
    const Process child({.attr = own});
    ASSERT_TRUE(scheduler_.set_nice(child.pid(), -11).ok());
    SchedAttr then = own;
    if (!own.realtime()) then.nice = -11;
    EXPECT_EQ(attr(child), then);
    EXPECT_EQ(scheduler_.nice(child.pid()).value_or(99), -11);
  }
}

// Printed, not judged: the machine may be busy.
TEST_F(LendingTest, PriceOfADonation) {
  const Process child({});
  const std::vector<Boost> loan = {boost(child, realtime(SchedPolicy::fifo, 20))};
  constexpr int rounds = 2000;
  const Time began = clock_.now();
  for (int i = 0; i < rounds; ++i) {
    apply(loan);
    apply({});
  }
  const Duration each = (clock_.now() - began) / rounds;
  RecordProperty("begin_and_end_ns", std::to_string(each.count()));
  std::printf("a real-time donation, begin and end: %.2f us\n", static_cast<double>(each.count()) / 1000);
  EXPECT_EQ(actuator_->total(), static_cast<std::uint64_t>(rounds));
}

}  // namespace
}  // namespace swapd::actuate
