// A parallel job whose rivals are in other groups: one of its own is lowered for as long as the job runs in slots.
#include "fixture.h"

namespace swapd::actuate {
namespace {

// Both threads of the job are in session 5, cgroup /job.
class LoweredGroupTest : public ActuatorTest {
 protected:
  LoweredGroupTest() {
    groups_.enabled = true;
    groups_.autogroup_of = {{10, 5}, {11, 5}, {20, 6}};
    for (const pid_t tid : {10, 11, 20}) scheduler_.add(tid, nice_of(0));
  }
  static Boost between_slots(pid_t tid, std::uint8_t level = 1) {
    SchedAttr attr;
    attr.policy = SchedPolicy::idle;
    Boost asked{id(tid), {}, {}, lent(attr)};
    asked.lowers = asked.quiet = true;
    asked.lowers_group = level;
    return asked;
  }
  static Boost in_slot(pid_t tid, std::uint8_t level = 1) {
    Boost asked{id(tid), {}, {}, lent(fifo(1))};
    asked.second_best = lent(nice_of(-20));
    asked.quiet = true;
    asked.lowers_group = level;
    return asked;
  }
  // A donation to a thread of the job.
  static Boost donated(pid_t tid, int nice) {
    Boost asked = boost(tid, nice_of(nice));
    asked.lowers_group = 1;
    return asked;
  }
  void pass(std::vector<Boost> boosts, int milliseconds = 25) {
    clock_.advance(std::chrono::milliseconds(milliseconds));
    apply(std::move(boosts));
  }
  int group_nice(std::int64_t id) { return groups_.autogroup_nice[id]; }
  bool may_lower(pid_t tid) { return actuator().may_lower_groups(id(tid), 0, clock_.now()); }
};

TEST_F(LoweredGroupTest, SessionHasTheLowestNiceValueUntilTheJobRunsInSlotsNoMore) {
  groups_.autogroup_nice[5] = -2;
  apply({between_slots(10), between_slots(11)});
  EXPECT_EQ(group_nice(5), 19);
  EXPECT_EQ(group_nice(6), 0);
  apply({});
  EXPECT_EQ(group_nice(5), -2);
}

TEST_F(LoweredGroupTest, SlotsDoNotChangeIt) {
  apply({between_slots(10), between_slots(11)});
  const std::uint64_t changes = actuator().group_changes();
  for (int i = 0; i < 10; ++i) {
    pass({in_slot(10), in_slot(11)});
    EXPECT_EQ(group_nice(5), 19);
    pass({between_slots(10), between_slots(11)});
    EXPECT_EQ(group_nice(5), 19);
  }
  EXPECT_EQ(actuator().group_changes(), changes);
}

TEST_F(LoweredGroupTest, TheLastThreadsEndGivesItBack) {
  apply({between_slots(10), between_slots(11)});
  groups_.autogroup_of.erase(10);
  scheduler_.threads.erase(10);
  actuator().forget(id(10));
  EXPECT_EQ(group_nice(5), 19) << "the other one still runs in slots";
  actuator().forget(id(11));
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(LoweredGroupTest, ADonationRaisesItForAsLongAsItLasts) {
  actuator().set_competitors({{5, 6}, {}, {}});
  apply({between_slots(10), between_slots(11)});
  pass({donated(10, -10), between_slots(11)});
  EXPECT_EQ(group_nice(5), -10);
  pass({between_slots(10), between_slots(11)});
  EXPECT_EQ(group_nice(5), 19);
  apply({});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(LoweredGroupTest, ADonationThatBeginsBeforeTheJobDoesIsNotLowered) {
  actuator().set_competitors({{5, 6}, {}, {}});
  apply({donated(10, -10)});
  pass({donated(10, -10), between_slots(11)});
  EXPECT_EQ(group_nice(5), -10);
  pass({between_slots(10), between_slots(11)});
  EXPECT_EQ(group_nice(5), 19);
}

TEST_F(LoweredGroupTest, ADonationOfTheGroupsOwnNiceValueIsWorthThat) {
  scheduler_.add(10, nice_of(5));
  actuator().set_competitors({{5, 6}, {}, {}});
  apply({between_slots(10), between_slots(11)});
  pass({donated(10, 0), between_slots(11)});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(LoweredGroupTest, WhatAnotherProgramMakesOfItIsLeftAlone) {
  apply({between_slots(10), between_slots(11)});
  groups_.autogroup_nice[5] = 3;
  pass({between_slots(10), between_slots(11)}, 1100);
  EXPECT_EQ(group_nice(5), 3);
  EXPECT_FALSE(may_lower(10)) << "the job is told";
  apply({});
  EXPECT_EQ(group_nice(5), 3);
  clock_.advance(std::chrono::minutes(1));
  EXPECT_TRUE(may_lower(10)) << "not for ever";
}

TEST_F(LoweredGroupTest, SoItIsIfThatHappensUnderADonation) {
  actuator().set_competitors({{5, 6}, {}, {}});
  apply({between_slots(10), between_slots(11)});
  pass({donated(10, -10), between_slots(11)});
  groups_.autogroup_nice[5] = 3;
  pass({between_slots(10), between_slots(11)});
  EXPECT_EQ(group_nice(5), 3);
}

TEST_F(LoweredGroupTest, WhatCannotBeLoweredIsNotTriedAgainAtEachSlot) {
  groups_.write_error = EACCES;
  apply({between_slots(10), between_slots(11)});
  EXPECT_FALSE(may_lower(10));
  groups_.write_error = 0;
  pass({in_slot(10), in_slot(11)});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(LoweredGroupTest, WithoutRealTimeSlotsItIsNotLowered) {
  for (const pid_t tid : {10, 11}) scheduler_.threads.at(tid).realtime_error = EPERM;
  apply({in_slot(10), in_slot(11)});
  EXPECT_EQ(group_nice(5), 0);
  pass({between_slots(10), between_slots(11)});
  EXPECT_EQ(group_nice(5), 0);
  EXPECT_FALSE(may_lower(10));
}

TEST_F(LoweredGroupTest, PolicyMayForbidIt) {
  actuator().set_rules({.group_action = false});
  EXPECT_FALSE(may_lower(10));
  apply({between_slots(10)});
  EXPECT_EQ(group_nice(5), 0);
  actuator().set_rules({.realtime = false});
  EXPECT_FALSE(may_lower(10));
  actuator().set_rules({});
  EXPECT_TRUE(may_lower(10));
}

TEST_F(LoweredGroupTest, OneClassMayForbidIt) {
  Rules rules;
  rules.classes = {{.group_action = false}};
  actuator().set_rules(rules);
  EXPECT_FALSE(actuator().may_lower_groups(id(10), 1, clock_.now()));
  Boost of_class = between_slots(10);
  of_class.provider_class = of_class.requester_class = 1;
  apply({of_class});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(LoweredGroupTest, ADryRunTouchesNothing) {
  Actuator::Options dry = options();
  dry.dry_run = true;
  start(std::move(dry));
  EXPECT_FALSE(may_lower(10));
  apply({between_slots(10)});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(LoweredGroupTest, TheNextSwapdGivesBackWhatAKilledOneLeft) {
  apply({between_slots(10), between_slots(11)});
  EXPECT_EQ(group_nice(5), 19);
  std::filesystem::copy_file(dir_ + "/journal", dir_ + "/kept");
  actuator_.reset();
  groups_.autogroup_nice[5] = 19;
  std::filesystem::rename(dir_ + "/kept", dir_ + "/journal");
  start(options());
  EXPECT_TRUE(actuator().recover().ok());
  EXPECT_EQ(group_nice(5), 0);
}

class LoweredCgroupTest : public LoweredGroupTest {
 protected:
  static constexpr sys::WeightedGroup usual{.weight = 100, .nice_0_weight = 100, .max_weight = 10000, .min_weight = 1};
  LoweredCgroupTest() {
    for (const char* group : {"/a", "/a/b", "/a/c"}) groups_.weighted[group] = usual;
    for (const pid_t tid : {10, 11}) groups_.group_of_tid[tid] = "/a/b";
  }
  std::uint64_t weight(const std::string& group) { return groups_.weighted[group].weight; }
};

TEST_F(LoweredCgroupTest, TheGroupAtTheLevelHasTheLowestWeight) {
  apply({between_slots(10), between_slots(11)});
  EXPECT_EQ(weight("/a/b"), 1U);
  EXPECT_EQ(weight("/a"), 100U);
  EXPECT_EQ(group_nice(5), 0) << "outside of the root cgroup the session means nothing";
  apply({});
  EXPECT_EQ(weight("/a/b"), 100U);
}

TEST_F(LoweredCgroupTest, AnotherLevelIsAnotherGroup) {
  apply({between_slots(10, 2)});
  EXPECT_EQ(weight("/a"), 1U);
  EXPECT_EQ(weight("/a/b"), 100U);
  pass({between_slots(10, 1)});
  EXPECT_EQ(weight("/a"), 100U);
  EXPECT_EQ(weight("/a/b"), 1U);
}

TEST_F(LoweredCgroupTest, ItsOwnWeightIsKnownMeanwhile) {
  const std::uint64_t before = actuator().group_changes();
  apply({between_slots(10)});
  EXPECT_EQ(actuator().own_weight("/a/b", before), 100U);
}

TEST_F(LoweredCgroupTest, AGroupWithAQuotaIsLeftAloneBecauseSlotsKnowNone) {
  groups_.weighted["/a"].quota = 1.5;
  apply({between_slots(10)});
  EXPECT_EQ(weight("/a/b"), 100U);
  EXPECT_FALSE(may_lower(10));
}

TEST_F(LoweredCgroupTest, SoIsOneThatIsIdle) {
  groups_.weighted["/a/b"].idle = true;
  apply({between_slots(10)});
  EXPECT_FALSE(may_lower(10));
}

TEST_F(LoweredCgroupTest, OneThatWeighsLeastAlreadyStaysAsItIs) {
  groups_.weighted["/a/b"].weight = 1;
  apply({between_slots(10)});
  EXPECT_TRUE(may_lower(10));
  EXPECT_EQ(weight("/a/b"), 1U);
}

}  // namespace
}  // namespace swapd::actuate
