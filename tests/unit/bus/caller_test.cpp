// A caller's rights, and the right that a refusal names.
#include "bus/caller.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace swapd::bus {
namespace {

TEST(Caller, TheFirstRightThatIsLackingIsRemembered) {
  const Caller caller(1000, {Right::view});
  EXPECT_TRUE(caller.may(Right::view));
  EXPECT_EQ(caller.missing(), std::nullopt);
  const Caller copy = caller;  // goes with a request
  EXPECT_FALSE(copy.may(Right::manage_others));
  EXPECT_FALSE(copy.may(Right::raise_priority));
  EXPECT_EQ(caller.missing(), Right::manage_others);
}

TEST(Caller, RootMayAllAndNobodyNothing) {
  const Caller nobody;
  for (const Right right : {Right::view, Right::manage_own, Right::manage_others, Right::record, Right::raise_priority,
                            Right::set_limits, Right::administer}) {
    EXPECT_TRUE(Caller::root().may(right));
    EXPECT_FALSE(nobody.may(right));
  }
  EXPECT_EQ(Caller::root().uid(), 0U);
  EXPECT_NE(nobody.uid(), 0U);
}

TEST(Caller, EachRightIsAnActionOfThePolicyFile) {
  std::ifstream file(SWAPD_SOURCE_DIR "/systemd/org.swapd1.policy");
  std::stringstream text;
  text << file.rdbuf();
  std::size_t actions = 0;
  for (std::size_t at = 0; (at = text.str().find("<action id=", at)) != std::string::npos; ++at) ++actions;
  EXPECT_EQ(actions, rights);
  for (std::size_t i = 0; i < rights; ++i) {
    const std::string id = "<action id=\"" + std::string(action(static_cast<Right>(i))) + "\">";
    EXPECT_NE(text.str().find(id), std::string::npos) << id;
  }
}

}  // namespace
}  // namespace swapd::bus
