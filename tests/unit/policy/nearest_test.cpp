#include "policy/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace swapd::policy {
namespace {

using namespace std::string_view_literals;

TEST(EditDistance, CountsLettersPutInLeftOutChangedAndSwapped) {
  EXPECT_EQ(edit_distance("quantum_ms", "quantum_ms"), 0U);
  EXPECT_EQ(edit_distance("quantm_ms", "quantum_ms"), 1U);
  EXPECT_EQ(edit_distance("quanttum_ms", "quantum_ms"), 1U);
  EXPECT_EQ(edit_distance("quantun_ms", "quantum_ms"), 1U);
  EXPECT_EQ(edit_distance("qauntum_ms", "quantum_ms"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Nearest, TakesTheClosestAndTheFirstOfEquals) {
  static constexpr std::array known = {"pipe"sv, "pty"sv, "fifo"sv};
  EXPECT_EQ(nearest("pipes", known), "pipe");
  EXPECT_EQ(nearest("tpy", known), "pty");
  static constexpr std::array equal = {"aab"sv, "aac"sv};
  EXPECT_EQ(nearest("aad", equal), "aab");
}

TEST(Nearest, NamesNobodyWhereNothingIsNear) {
  static constexpr std::array known = {"pipe"sv, "pty"sv};
  EXPECT_EQ(nearest("zzzzzzzz", known), "");
  EXPECT_EQ(nearest("q", known), "") << "all letters differ";
  EXPECT_EQ(nearest(std::string(100'000, 'p'), known), "");
}

TEST(Suggestion, ListsWhatIsValidWhereNothingIsNear) {
  static constexpr std::array known = {"pipe"sv, "pty"sv};
  EXPECT_EQ(suggestion("pip", known), "; did you mean 'pipe'?");
  EXPECT_EQ(suggestion("pip", known, "[", "]"), "; did you mean [pipe]?");
  EXPECT_EQ(suggestion("zzzzzzzz", known), "; valid: pipe, pty");
}

}  // namespace
}  // namespace swapd::policy
