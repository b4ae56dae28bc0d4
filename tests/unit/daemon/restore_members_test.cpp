// The file in which a swapd leaves whom it managed.
#include "state/persistent_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace swapd::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MembersText : public testing::Test {
 protected:
  MembersText() : dir_(testing::TempDir() + "swapd-members-XXXXXX") { ::mkdtemp(dir_.data()); }
  ~MembersText() override { std::filesystem::remove_all(dir_); }
  void holds(const std::string& text) const { std::ofstream(dir_ + "/members") << text; }

  std::vector<model::Membership> members() const {
    const auto left = read_members(dir_, "boot");
    EXPECT_TRUE(left.ok());
    return left.ok() ? left->members : std::vector<model::Membership>{};
  }

  std::string dir_;
  const model::Membership shell_{.pid = 10, .start_time = 77, .class_name = "default", .managed = true, .launch = 10};
  const model::Membership child_{.pid = 11, .start_time = 78, .class_name = "batch", .managed = false, .launch = 10};
};

TEST_F(MembersText, ComesBackAsItWas) {
  ASSERT_TRUE(write_members(dir_, "boot", {shell_, child_}));
  EXPECT_THAT(members(), ElementsAre(shell_, child_));
  ASSERT_TRUE(write_members(dir_, "boot", {child_}));
  EXPECT_THAT(members(), ElementsAre(child_)) << "as a whole";
}

TEST_F(MembersText, OfAnotherBootOrMissingIsEmpty) {
  EXPECT_THAT(members(), IsEmpty());
  ASSERT_TRUE(write_members(dir_, "boot before", {shell_}));
  EXPECT_THAT(members(), IsEmpty());
}

TEST_F(MembersText, EndlessOnesAreDamaged) {
  std::string text = R"({"version":1,"boot_id":"boot","time":1,"members":[)";
  for (int i = 0; i <= 100'000; ++i)
    text += std::string(i == 0 ? "" : ",") + R"({"pid":1,"start_time":1,"class":"","managed":true,"launch":0})";
  holds(text + "]}");
  const auto read = read_members(dir_, "boot");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), EBADMSG);
}

TEST_F(MembersText, DamagedIsSaid) {
  for (
      const char* text :
      {"", "{", "[]", "7", R"({"version":2,"boot_id":"boot","time":1,"members":[]})",
       R"({"version":1,"boot_id":"boot"})", R"({"version":1,"boot_id":"boot","time":1,"members":[{"pid":1}]})",
       R"({"version":1,"boot_id":"boot","time":1,"members":[{"pid":"x","start_time":1,"class":"","managed":true,"launch":0}]})",
       R"({"version":1,"boot_id":"boot","time":1,"members":[{"pid":1e99,"start_time":1,"class":"","managed":true,"launch":0}]})",
       R"({"version":1e99,"boot_id":"boot","time":1,"members":[]})",
       R"({"version":1,"boot_id":"boot","time":-1,"members":[]})",
       R"({"version":1,"boot_id":"boot","time":1,"members":{"a":1}})"}) {
    holds(text);
    const auto read = read_members(dir_, "boot");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code(), EBADMSG);
    EXPECT_THAT(read.error().text(), HasSubstr("/members: "));
  }
}

TEST_F(MembersText, ADirectoryThatIsGoneIsAnError) {
  EXPECT_FALSE(write_members(dir_ + "/none", "boot", {shell_}).ok());
}

}  // namespace
}  // namespace swapd::daemon
