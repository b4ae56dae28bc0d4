// For places where nice alone has no effect: autogroups and cpu cgroups (docs/design.md, Donation).
#include "actuate/group_booster.h"

#include "fixture.h"

namespace swapd::actuate {
namespace {

class AutogroupTest : public ActuatorTest {
 protected:
  AutogroupTest() {
    groups_.enabled = true;
    groups_.autogroup_of = {{10, 5}, {11, 5}, {20, 6}};
    for (const pid_t tid : {10, 11, 20}) scheduler_.add(tid, nice_of(0));
  }
  void rivals(std::vector<std::int64_t> autogroups, std::vector<std::string> cpu_groups = {}) {
    actuator().set_competitors({std::move(autogroups), std::move(cpu_groups), {}});
  }
  int group_nice(std::int64_t id) { return groups_.autogroup_nice[id]; }
};

TEST_F(AutogroupTest, InOneSessionNiceAloneReaches) {
  rivals({5});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(attr(10), lent(nice_of(-10)));
  EXPECT_EQ(group_nice(5), 0);
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none);
}

TEST_F(AutogroupTest, AcrossSessionsTheGroupIsLentTheNiceToo) {
  rivals({5, 6});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(attr(10), lent(nice_of(-10)));
  EXPECT_EQ(group_nice(5), -10);
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none);
  apply({});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(AutogroupTest, WhileNobodyHasSaidWhoCompetesTheGroupIsLentTo) {
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(group_nice(5), -10);
}

TEST_F(AutogroupTest, ACompetitorInACpuGroupIsElsewhereToo) {
  rivals({5}, {"/batch"});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(group_nice(5), -10);
}

TEST_F(AutogroupTest, WhereThePolicyForbidsItTheDonationIsIneffective) {
  actuator().set_rules({.group_action = false});
  rivals({5, 6});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(group_nice(5), 0);
  EXPECT_EQ(heard(), (Heard{{What::ineffective, Ineffective::autogroup}}));
  rivals({5});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(heard(), (Heard{{What::changed, Ineffective::none}})) << "the competitor has left";
  EXPECT_EQ(actuator().total(), 1U);
}

TEST_F(AutogroupTest, OneOfTheTwoClassesMayForbidIt) {
  Rules rules;
  rules.classes = {{.group_action = false}};
  actuator().set_rules(rules);
  rivals({5, 6});
  Boost of_requester = boost(10, nice_of(-10));
  of_requester.requester_class = 1;
  Boost of_provider = boost(11, nice_of(-10));
  of_provider.provider_class = 1;
  apply({of_requester, of_provider});
  EXPECT_EQ(group_nice(5), 0);
  for (const pid_t tid : {10, 11}) EXPECT_EQ(actuator().active(id(tid))->reason, Ineffective::autogroup);
  apply({boost(10, nice_of(-10)), of_provider});
  EXPECT_EQ(group_nice(5), -10) << "neither class of this one forbids it";
}

TEST_F(AutogroupTest, WhereTheKernelForbidsItTheDonationIsIneffective) {
  groups_.write_error = EACCES;
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::autogroup);
  groups_.write_error = 0;
  apply({});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(AutogroupTest, SwitchedOffNiceReaches) {
  groups_.enabled = false;
  actuator().set_rules({.group_action = false});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none);
}

TEST_F(AutogroupTest, ARealTimeLoanNeedsNoGroup) {
  actuator().set_rules({.group_action = false});
  rivals({5, 6});
  apply({boost(10, fifo(10))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none);
  EXPECT_EQ(groups_.reads, 0);
}

TEST_F(AutogroupTest, TwoOfOneSessionShareTheBestAndTheLastGivesItBack) {
  groups_.autogroup_nice[5] = 2;
  apply({boost(10, nice_of(-5))});
  apply({boost(10, nice_of(-5)), boost(11, nice_of(-12))});
  EXPECT_EQ(group_nice(5), -12);
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(group_nice(5), -5);
  apply({boost(10, fifo(5))});
  EXPECT_EQ(group_nice(5), 2) << "a real-time loan leaves the group alone";
  apply({boost(10, nice_of(-5))});
  apply({boost(11, nice_of(-5))});
  EXPECT_EQ(group_nice(5), -5);
  apply({});
  EXPECT_EQ(group_nice(5), 2);
}

TEST_F(AutogroupTest, AGroupThatStandsHigherIsLeftAlone) {
  groups_.autogroup_nice[5] = -15;
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(group_nice(5), -15);
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none);
  apply({});
  EXPECT_EQ(group_nice(5), -15);
}

TEST_F(AutogroupTest, AForeignChangeOfTheGroupIsNotUndone) {
  apply({boost(10, nice_of(-10))});
  groups_.autogroup_nice[5] = 7;
  apply({});
  EXPECT_EQ(group_nice(5), 7);
}

TEST_F(AutogroupTest, AProviderThatDiesLeavesNoGroupBoosted) {
  apply({boost(10, nice_of(-10))});
  groups_.autogroup_of.erase(10);
  scheduler_.threads.erase(10);
  actuator().forget(id(10));
  EXPECT_EQ(group_nice(5), 0) << "restored through another process of the session";
  EXPECT_EQ(groups_.scans, 1);
}

TEST_F(AutogroupTest, ASessionsLeaderSparesTheScan) {
  groups_.leader_of[10] = 11;
  apply({boost(10, nice_of(-10))});
  groups_.autogroup_of.erase(10);
  scheduler_.threads.erase(10);
  actuator().forget(id(10));
  EXPECT_EQ(group_nice(5), 0);
  EXPECT_EQ(groups_.scans, 0);
}

TEST_F(AutogroupTest, TheCompetitorsMayComeLater) {
  rivals({5});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(group_nice(5), 0);
  rivals({5, 6});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(group_nice(5), -10);
  rivals({5});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(AutogroupTest, ManyDonationsLookTheThreadUpOnce) {
  rivals({5});
  for (int i = 0; i < 100; ++i) {
    apply({boost(10, nice_of(-10))});
    apply({});
  }
  EXPECT_LE(groups_.reads, 2);
}

class CpuGroupTest : public ActuatorTest {
 protected:
  CpuGroupTest() {
    scheduler_.add(10, nice_of(0));
    scheduler_.add(11, nice_of(0));
    groups_.group_of_tid = {{10, "/a/b"}, {11, "/a/b"}};
    groups_.weighted = {{"/a", group(1024)}, {"/a/b", group(512)}};
  }
  static sys::WeightedGroup group(std::uint64_t weight) {
    sys::WeightedGroup made;
    made.weight = weight;
    return made;
  }
  void rivals(std::vector<std::string> cpu_groups, std::vector<std::int64_t> autogroups = {}) {
    actuator().set_competitors({std::move(autogroups), std::move(cpu_groups), {}});
  }
  std::uint64_t weight(const std::string& path) { return groups_.weighted.at(path).weight; }
};

TEST_F(CpuGroupTest, AmongThreadsOfTheGroupNiceReaches) {
  rivals({"/a/b", "/a/b/c"});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(weight("/a/b"), 512U);
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none);
}

TEST_F(CpuGroupTest, OnlyTheLevelsWhereTheyPartAreRaised) {
  rivals({"/a/other"});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(weight("/a/b"), 512U * 9548 / 1024);
  EXPECT_EQ(weight("/a"), 1024U);
  rivals({"/a"});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(weight("/a"), 1024U) << "a thread of /a itself competes with /a/b";
  rivals({"/a/other", "/x"});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(weight("/a"), 9548U);
  apply({});
  EXPECT_EQ(weight("/a/b"), 512U);
  EXPECT_EQ(weight("/a"), 1024U);
}

TEST_F(CpuGroupTest, AnAutogroupIsAtTheRoot) {
  rivals({"/a/b"}, {3});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(weight("/a"), 9548U);
}

TEST_F(CpuGroupTest, TheHeaviestWeightIsTheLimit) {
  groups_.weighted["/a/b"].weight = 200'000;
  apply({boost(10, nice_of(-20))});
  EXPECT_EQ(weight("/a/b"), 262'144U);
}

TEST_F(CpuGroupTest, ASecondUserCountsFromTheGroupsOwnWeight) {
  rivals({"/a/other"});
  apply({boost(10, nice_of(-10)), boost(11, nice_of(-5))});
  EXPECT_EQ(weight("/a/b"), 512U * 9548 / 1024);
  apply({boost(11, nice_of(-5))});
  EXPECT_EQ(weight("/a/b"), 512U * 3121 / 1024);
  apply({});
  EXPECT_EQ(weight("/a/b"), 512U);
}

TEST_F(CpuGroupTest, ForbiddenByThePolicyIsIneffective) {
  actuator().set_rules({.group_action = false});
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(weight("/a/b"), 512U);
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::cgroup_weight);
}

class IdleGroupTest : public CpuGroupTest {
 protected:
  IdleGroupTest() {
    groups_.weighted["/a/b"] = {.weight = 3, .idle = true};
    rivals({"/a/other"});
  }
  bool idle(const std::string& path) { return groups_.weighted.at(path).idle; }
};

TEST_F(IdleGroupTest, ItIsAnOrdinaryGroupOfTheLentWeightWhileTheLoanLasts) {
  apply({boost(10, nice_of(-10))});
  EXPECT_FALSE(idle("/a/b"));
  EXPECT_EQ(weight("/a/b"), 9548U) << "counted from the usual weight, not from that of an idle group";
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none);
  apply({});
  EXPECT_TRUE(idle("/a/b"));
}

TEST_F(IdleGroupTest, ItStaysOrdinaryWhenItIsLookedAtAgain) {
  apply({boost(10, nice_of(-10))});
  clock_.advance(std::chrono::seconds(3));
  rivals({"/a/another"});
  apply({boost(10, nice_of(-10))});
  EXPECT_FALSE(idle("/a/b"));
  EXPECT_EQ(weight("/a/b"), 9548U);
  apply({});
  EXPECT_TRUE(idle("/a/b"));
}

TEST_F(IdleGroupTest, ANiceValueThatRaisesNoWeightPutsItAsideToo) {
  scheduler_.add(10, nice_of(10));
  apply({boost(10, nice_of(0))});
  EXPECT_FALSE(idle("/a/b"));
  apply({});
  EXPECT_TRUE(idle("/a/b"));
}

TEST_F(IdleGroupTest, TheLastOfTwoGivesItBack) {
  apply({boost(10, nice_of(-10)), boost(11, nice_of(-5))});
  apply({boost(11, nice_of(-5))});
  EXPECT_FALSE(idle("/a/b"));
  EXPECT_EQ(weight("/a/b"), 3121U);
  apply({});
  EXPECT_TRUE(idle("/a/b"));
}

TEST_F(IdleGroupTest, AGroupAboveWhereTheyPartStaysIdle) {
  groups_.weighted["/a"] = {.weight = 3, .idle = true};
  apply({boost(10, nice_of(-10))});
  EXPECT_TRUE(idle("/a")) << "the competitor is in it, too";
  EXPECT_FALSE(idle("/a/b"));
}

TEST_F(IdleGroupTest, ForbiddenByThePolicyItIsTheReason) {
  actuator().set_rules({.group_action = false});
  apply({boost(10, nice_of(-10))});
  EXPECT_TRUE(idle("/a/b"));
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::cgroup_idle);
}

TEST_F(IdleGroupTest, WhereTheKernelForbidsItItIsTheReason) {
  groups_.write_error = EACCES;
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::cgroup_idle);
}

TEST_F(IdleGroupTest, AmongThreadsOfTheGroupNiceReaches) {
  rivals({"/a/b"});
  apply({boost(10, nice_of(-10))});
  EXPECT_TRUE(idle("/a/b"));
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none);
}

TEST_F(IdleGroupTest, ItsOwnWeightIsThatOfAnIdleGroup) {
  const std::uint64_t before = actuator().group_changes();
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(actuator().own_weight("/a/b", actuator().group_changes()), 0U);
  apply({});
  EXPECT_EQ(actuator().own_weight("/a/b", before), 0U);
}

TEST_F(CpuGroupTest, AGroupsOwnWeightIsKnownToWhoHasReadItMeanwhile) {
  rivals({"/a/other"});
  const std::uint64_t before = actuator().group_changes();
  EXPECT_EQ(actuator().own_weight("/a/b", before), std::nullopt);
  apply({boost(10, nice_of(-10))});
  const std::uint64_t meanwhile = actuator().group_changes();
  EXPECT_EQ(actuator().own_weight("/a/b", meanwhile), 512U) << "lent to";
  apply({});
  EXPECT_EQ(actuator().own_weight("/a/b", before), 512U) << "it was lent to after that";
  EXPECT_EQ(actuator().own_weight("/a/b", meanwhile), 512U) << "and then";
  EXPECT_EQ(actuator().own_weight("/a/b", actuator().group_changes()), std::nullopt) << "what is read now is its own";
}

TEST_F(CpuGroupTest, OneLevelThatCannotBeRaisedUndoesTheOthers) {
  groups_.weighted.erase("/a");  // not to be seen, say
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::cgroup_weight);
  EXPECT_EQ(weight("/a/b"), 512U);
}

TEST_F(CpuGroupTest, AQuotaBelowOneCpuIsTheReasonForNiceOnly) {
  groups_.weighted["/a"].quota = 0.5;
  apply({boost(10, nice_of(-10)), boost(11, fifo(5))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::cgroup_quota);
  EXPECT_EQ(actuator().active(id(11))->reason, Ineffective::none) << "bandwidth control is the fair class's";
}

TEST_F(CpuGroupTest, WhetherAQuotaHoldsThreadsBackIsWhatTheScanHasSeen) {
  groups_.weighted["/a"].quota = 0.5;
  Competitors seen;
  seen.cpu_groups = {"/a/b"};
  seen.throttled = {{"/a", false}, {"/a/b", false}};
  actuator().set_competitors(seen);
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none) << "it is more than what is asked for";
  groups_.weighted["/a"].quota = 2;
  seen.throttled["/a"] = true;
  actuator().set_competitors(seen);
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::cgroup_quota) << "two CPUs are less than what is asked for";
}

TEST_F(CpuGroupTest, AThreadThatStandsStillGainsNothingByWhateverMeans) {
  Competitors seen;
  seen.cpu_groups = {"/a/b"};
  seen.halted = {{id(10), Ineffective::stopped}, {id(11), Ineffective::frozen}};
  actuator().set_competitors(seen);
  apply({boost(10, nice_of(-10)), boost(11, fifo(5))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::stopped);
  EXPECT_EQ(actuator().active(id(11))->reason, Ineffective::frozen);
  seen.halted.clear();
  actuator().set_competitors(seen);
  apply({boost(10, nice_of(-10)), boost(11, fifo(5))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none);
}

TEST_F(CpuGroupTest, AQuotaOfTwoCpusIsNone) {
  groups_.weighted["/a"].quota = 2;
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none);
}

TEST_F(CpuGroupTest, AGroupThatIsRemovedIsNormal) {
  apply({boost(10, nice_of(-10))});
  groups_.weighted.clear();
  scheduler_.threads.clear();
  actuator().forget(id(10));
  EXPECT_TRUE(actuator().active().empty());
}

// The cgroups that share disks, where their weights count.
TEST(SharedDepth, CountsWholeComponents) {
  EXPECT_EQ(shared_depth("/a/b", "/a/b"), 2U);
  EXPECT_EQ(shared_depth("/a/b", "/a/bc"), 1U);
  EXPECT_EQ(shared_depth("/a/b", "/a/b/c"), 2U);
  EXPECT_EQ(shared_depth("/a/b", "/"), 0U);
  EXPECT_EQ(shared_depth("/ab", "/a"), 0U);
}

}  // namespace
}  // namespace swapd::actuate
