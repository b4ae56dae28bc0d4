#include "base/error.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/result.h"

namespace swapd {
namespace {

TEST(Error, TellsItsContextOutermostFirst) {
  const Error error = Error(EINVAL, "writing nice 40").in("setting thread 7").in("lending");
  EXPECT_EQ(error.text(), "lending: setting thread 7: writing nice 40: Invalid argument");
  EXPECT_EQ(error.code(), EINVAL);
}

TEST(Error, CodeZeroIsTheContextAlone) {
  EXPECT_EQ(Error(0, "policy.toml:3: unknown key").text(), "policy.toml:3: unknown key");
  EXPECT_EQ(Error(EPERM, "").text(), "Operation not permitted");
  EXPECT_EQ(Error(EPERM, "").in("outer").text(), "outer: Operation not permitted");
}

TEST(Error, GoneIsWhatHasLeft) {
  EXPECT_TRUE(Error(ESRCH, "").gone());
  EXPECT_TRUE(Error(ENOENT, "").gone());
  EXPECT_FALSE(Error(EPERM, "").gone());
  EXPECT_FALSE(Error(EACCES, "").gone());
}

TEST(Error, TakesErrno) {
  errno = ESRCH;
  const Error error = errno_error("reading thread 9");
  EXPECT_TRUE(error.gone());
  EXPECT_EQ(error.text(), "reading thread 9: No such process");
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> seven = 7;
  EXPECT_TRUE(seven);
  EXPECT_EQ(*seven, 7);
  const Result<int> none = Error(ENOENT, "looking");
  EXPECT_FALSE(none.ok());
  EXPECT_TRUE(none.error().gone());
  EXPECT_EQ(none.value_or(3), 3);
  EXPECT_EQ(seven.value_or(3), 7);
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> owned = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = std::move(owned).value();
  EXPECT_EQ(*taken, 5);
  Result<std::unique_ptr<int>> failed = Error(EIO, "");
  EXPECT_EQ(std::move(failed).value_or(nullptr), nullptr);
}

TEST(Result, StatusIsDoneOrAnError) {
  const Status done = Done{};
  EXPECT_TRUE(done);
  const Status failed = Error(EBUSY, "installing").in("launch");
  EXPECT_EQ(failed.error().text(), "launch: installing: Device or resource busy");
}

}  // namespace
}  // namespace swapd
