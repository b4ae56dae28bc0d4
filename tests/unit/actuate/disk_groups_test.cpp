// For places where an I/O priority alone has no effect: weights of cgroups that share a disk (docs/design.md,
// Donation).
#include "actuate/group_booster.h"

#include "fixture.h"

namespace swapd::actuate {
namespace {

class DiskGroupTest : public ActuatorTest {
 protected:
  DiskGroupTest() {
    disk_groups_.group_of_tid = {{10, "/a"}, {11, "/a"}, {12, "/user/x/app"}};
    for (const std::string group : {"/a", "/user", "/user/x", "/user/x/app"})
      disk_groups_.weighted[group] = {.weight = 100, .nice_0_weight = 100, .max_weight = 1000};
    for (const pid_t tid : {10, 11, 12}) scheduler_.add(tid, nice_of(0));
  }
  void at_the_disk(std::vector<std::string> others, std::vector<std::string> boosted) {
    Competitors found;
    found.others_at_disks = std::move(others);
    found.boosted_at_disks = std::move(boosted);
    actuator().set_competitors(std::move(found));
  }
  std::uint64_t weight(const std::string& group = "/a") { return disk_groups_.weighted[group].weight; }
};

TEST_F(DiskGroupTest, HaveTheWeightOfWhatIsLent) {
  at_the_disk({"/hog"}, {"/a"});
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(weight(), 100U * 3121 / 1024);
  apply({boost(10, fifo(10))});
  EXPECT_EQ(weight(), 1000U) << "a group has no real-time share of a disk: the most that it may have";
  apply({});
  EXPECT_EQ(weight(), 100U);
}

TEST_F(DiskGroupTest, HaveTheBestOfTwoLoans) {
  at_the_disk({"/hog"}, {"/a"});
  apply({boost(10, nice_of(-5)), boost(11, nice_of(-1))});
  EXPECT_EQ(weight(), 304U);
  apply({boost(11, nice_of(-1))});
  EXPECT_EQ(weight(), 100U * 1277 / 1024);
  actuator().forget(id(11));
  EXPECT_EQ(weight(), 100U);
}

TEST_F(DiskGroupTest, HaveItWhereTheyPartFromWhoElseIsAtTheDisk) {
  at_the_disk({"/user/y"}, {"/user/x/app"});
  apply({boost(12, nice_of(-5))});
  EXPECT_EQ(weight("/user"), 100U);
  EXPECT_EQ(weight("/user/x"), 304U);
  EXPECT_EQ(weight("/user/x/app"), 100U) << "nobody competes there: multiplied it would be more than what is lent";
  at_the_disk({"/", "/user/x"}, {"/user/x/app"});
  apply({boost(12, nice_of(-5))});
  EXPECT_EQ(weight("/user"), 304U);
  EXPECT_EQ(weight("/user/x"), 100U);
  EXPECT_EQ(weight("/user/x/app"), 304U);
}

TEST_F(DiskGroupTest, AreLeftAloneWhereNoneOfTheirsOrNobodyElseWaitsForADisk) {
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(weight(), 100U) << "nobody has said who does";
  at_the_disk({"/hog"}, {});
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(weight(), 100U);
  at_the_disk({"/a"}, {"/a"});
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(weight(), 100U) << "in the same group its I/O priority counts";
  at_the_disk({"/hog"}, {"/a"});
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(weight(), 304U);
  at_the_disk({}, {"/a"});
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(weight(), 100U) << "the other one has what it wanted";
}

TEST_F(DiskGroupTest, AreLeftAloneWhereSingleDisksHaveWeightsOfTheirOwn) {
  disk_groups_.weighted["/a"].of_devices = true;
  at_the_disk({"/hog"}, {"/a"});
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(weight(), 100U);
}

TEST_F(DiskGroupTest, HaveItAtEachLevelByItself) {
  disk_groups_.weighted["/user"].of_devices = true;
  at_the_disk({"/", "/user/x"}, {"/user/x/app"});
  apply({boost(12, nice_of(-5))});
  EXPECT_EQ(weight("/user"), 100U);
  EXPECT_EQ(weight("/user/x/app"), 304U);
}

TEST_F(DiskGroupTest, AreGivenBackWhereTheLastLookWasLongAgo) {
  at_the_disk({"/hog"}, {"/a"});
  apply({boost(10, nice_of(-5))});
  actuator().forget_what_passes();
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(weight(), 100U);
}

TEST_F(DiskGroupTest, AreLeftAloneWhereThePolicySaysSo) {
  actuator().set_rules({.group_action = false});
  at_the_disk({"/hog"}, {"/a"});
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(weight(), 100U);
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none) << "it is effective for the CPU";
}

TEST_F(DiskGroupTest, AreGivenBackAfterACrash) {
  auto crashed = std::make_unique<Actuator>(scheduler_, groups_, options());
  Competitors found;
  found.others_at_disks = {"/hog"};
  found.boosted_at_disks = {"/a"};
  crashed->set_competitors(found);
  crashed->apply(std::vector{boost(10, nice_of(-5))}, clock_.now());
  EXPECT_EQ(weight(), 304U);
  // As SIGKILL: nothing is given back, and the journal stays.
  const std::string kept = dir_ + "/kept";
  std::filesystem::copy_file(dir_ + "/journal", kept);
  crashed.reset();
  disk_groups_.weighted["/a"].weight = 304;
  disk_groups_.weighted["/a"].of_devices = true;  // since
  std::filesystem::rename(kept, dir_ + "/journal");
  EXPECT_EQ(actuator().recover().value_or(0), 1);
  EXPECT_EQ(weight(), 100U);
}

}  // namespace
}  // namespace swapd::actuate
