// The origin of each value of a policy.
#include "policy/origins.h"

#include <gmock/gmock.h>

#include "policy/defaults.h"
#include "unit/policy/support.h"

namespace swapd::policy::test {
namespace {

using testing::ElementsAre;

TEST(Origins, AreTheFileAndLineOfTheLastWordOnAKey) {
  Origins origins;
  origins.add("[donation]\nstrict = false\nceiling = 90\n[match.a]\ncomm = [\"a\", \"b\"]\n", "first.toml");
  origins.add("donation.strict = true\n[donation]\n", "bad.toml");  // a table again: no TOML, nothing is taken
  origins.add("# ours\n[model.pipe]\ncounts = false\n[donation]\nlinger_ms = 1.5\nstrict = true\n", "site.toml");
  EXPECT_THAT(origins.settings(), ElementsAre(Setting{"donation", "strict", "true", "site.toml:6"},
                                              Setting{"donation", "ceiling", "90", "first.toml:3"},
                                              Setting{"donation", "linger_ms", "1.5", "site.toml:5"},
                                              Setting{"match.a", "comm", "[ 'a', 'b' ]", "first.toml:5"},
                                              Setting{"model.pipe", "counts", "false", "site.toml:3"}));
}

TEST(Origins, OfTheDefaultsAreAllThatIsBuiltIn) {
  EXPECT_EQ(defaults_text, contents(source_dir() / "policies/00-defaults.toml"));
  Origins origins;
  origins.add(defaults_text, "built-in");
  EXPECT_GE(origins.settings().size(), 26U);
}

}  // namespace
}  // namespace swapd::policy::test
