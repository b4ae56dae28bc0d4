// The guard's work for frozen processes, with plain files in the place of control files.
#include "guard/guard_frozen.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace swapd::daemon {
namespace {

using std::chrono::seconds;

class GuardFrozenTest : public ::testing::Test {
 protected:
  GuardFrozenTest() { std::filesystem::create_directory(dir_); }
  ~GuardFrozenTest() override { std::filesystem::remove_all(dir_); }

  void freeze(std::size_t i, Time until) {
    write(i, "1");
    const std::string path = file(i);
    *std::ranges::copy(path, groups_.at(i).file.begin()).out = '\0';
    groups_.at(i).thaw = {'0', '\0'};
    groups_.at(i).until = until.time_since_epoch().count();
  }
  [[nodiscard]] std::string file(std::size_t i) const { return dir_ / std::to_string(i); }
  void write(std::size_t i, const std::string& text) const { std::ofstream(file(i)) << text; }
  [[nodiscard]] std::string control(std::size_t i) const {
    std::ifstream in(file(i));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path dir_ =
      std::filesystem::path(::testing::TempDir()) / ("guard-frozen-" + std::to_string(::getpid()));
  std::array<FrozenGroup, 3> groups_{};
  GuardFrozen guard_{groups_};
  const Time now_{seconds(100)};
};

TEST_F(GuardFrozenTest, OnlyWhoWasNotLookedAtInTimeGoesOn) {
  freeze(0, now_ - seconds(1));
  freeze(2, now_ + seconds(1));
  guard_.thaw_overdue(now_);
  EXPECT_EQ(control(0), "0");
  EXPECT_EQ(groups_[0].until, 0) << "swapd sees it, and freezes again if it lives";
  EXPECT_EQ(control(2), "1");
  EXPECT_NE(groups_[2].until, 0);
}

TEST_F(GuardFrozenTest, AloneItThawsAllEvenBeforeTheyAreFrozen) {
  freeze(0, now_ + seconds(1));
  freeze(1, Time{});  // swapd ended between writing the file's name and the time
  guard_.thaw_all();
  EXPECT_EQ(control(0), "0");
  EXPECT_EQ(control(1), "0");
  EXPECT_FALSE(guard_.are_left());
}

TEST_F(GuardFrozenTest, OnceIsEnough) {
  freeze(0, now_);
  guard_.thaw_all();
  write(0, "1");  // somebody else's freeze
  guard_.thaw_all();
  EXPECT_EQ(control(0), "1");
}

TEST_F(GuardFrozenTest, OneThatIsGoneNeedsNothing) {
  freeze(0, now_);
  std::filesystem::remove(file(0));
  guard_.thaw_all();
  EXPECT_FALSE(guard_.are_left());
}

TEST_F(GuardFrozenTest, OneThatCannotBeThawedIsTriedAgain) {
  freeze(0, now_);
  freeze(1, now_);
  std::filesystem::remove(file(0));
  std::filesystem::create_directory(file(0));  // open(2) says EISDIR
  guard_.thaw_all();
  EXPECT_EQ(control(1), "0") << "the others do not wait for it";
  EXPECT_TRUE(guard_.are_left());
  std::filesystem::remove(file(0));
  write(0, "1");
  guard_.thaw_all();
  EXPECT_EQ(control(0), "0");
  EXPECT_FALSE(guard_.are_left());
}

}  // namespace
}  // namespace swapd::daemon
