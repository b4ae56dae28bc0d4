// The file in which a swapd leaves what it has learnt.
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

class LessonsText : public testing::Test {
 protected:
  LessonsText() : dir_(testing::TempDir() + "swapd-lessons-XXXXXX") { ::mkdtemp(dir_.data()); }
  ~LessonsText() override { std::filesystem::remove_all(dir_); }
  void holds(const std::string& text) const { std::ofstream(dir_ + "/confidences") << text; }

  std::string dir_;
  const model::SavedConfidence good_{
      .provider = {10, 77}, .resource = {ResourceKind::sysv_sem, {4026531839, 8}}, .lead = 20};
  const model::SavedConfidence bad_{
      .provider = {11, 78}, .resource = {ResourceKind::flock, {1, 2, 1, UINT64_MAX}}, .lead = -3};
};

TEST_F(LessonsText, ComeBackAsTheyWere) {
  ASSERT_TRUE(write_lessons(dir_, "boot", {good_, bad_}));
  const auto read = read_lessons(dir_, "boot");
  ASSERT_TRUE(read);
  EXPECT_THAT(*read, ElementsAre(good_, bad_));
}

TEST_F(LessonsText, OfAnotherBootOrMissingAreNone) {
  EXPECT_THAT(*read_lessons(dir_, "boot"), IsEmpty());
  ASSERT_TRUE(write_lessons(dir_, "boot before", {good_}));
  EXPECT_THAT(*read_lessons(dir_, "boot"), IsEmpty());
}

TEST_F(LessonsText, OfAKindOfALaterVersionAreLeftOut) {
  holds(
      R"({"version":1,"boot_id":"boot","learnt":[{"tid":1,"start_time":2,"kind":"telepathy","ids":[1,2,3,4],"lead":1}]})");
  EXPECT_THAT(*read_lessons(dir_, "boot"), IsEmpty());
}

TEST_F(LessonsText, DamagedAreSaid) {
  for (
      const char* text :
      {"", "{", "[]", R"({"version":2,"boot_id":"boot","learnt":[]})", R"({"version":1,"boot_id":"boot"})",
       R"({"version":1,"boot_id":"boot","learnt":[{"tid":1}]})", R"({"version":1,"boot_id":"boot","learnt":7})",
       R"({"version":1,"boot_id":"boot","learnt":[{"tid":1,"start_time":2,"kind":"pipe","ids":[1],"lead":1}]})",
       R"({"version":1,"boot_id":"boot","learnt":[{"tid":1,"start_time":2,"kind":"pipe","ids":[1,2,3,4],"lead":1e99}]})",
       R"({"version":1e99,"boot_id":"boot","learnt":[]})"}) {
    holds(text);
    const auto read = read_lessons(dir_, "boot");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code(), EBADMSG);
    EXPECT_THAT(read.error().text(), HasSubstr("/confidences: "));
  }
}

}  // namespace
}  // namespace swapd::daemon
