#include "base/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace swapd {
namespace {

enum class Colour : std::uint8_t { red, green2, dark_blue };
constexpr auto colours =
    words<Colour>({{"red", Colour::red}, {"green", Colour::green2}, {"dark-blue", Colour::dark_blue}});

// With gaps, as the kernel numbers its policies, and out of order.
enum class Gap : std::uint8_t { zero = 0, three = 3, five = 5 };
constexpr auto gaps = words<Gap>({{"five", Gap::five}, {"zero", Gap::zero}, {"three", Gap::three}});

TEST(Words, EachValueHasItsWord) {
  static_assert(colours.of(Colour::red) == "red");
  EXPECT_EQ(colours.of(Colour::green2), "green");
  EXPECT_EQ(colours.of(Colour::dark_blue), "dark-blue");
  EXPECT_EQ(gaps.of(Gap::zero), "zero");
  EXPECT_EQ(gaps.of(Gap::three), "three");
  EXPECT_EQ(gaps.of(Gap::five), "five");
}

TEST(Words, EachWordHasItsValue) {
  static_assert(colours.find("green") == Colour::green2);
  EXPECT_EQ(gaps.find("five"), Gap::five);
  EXPECT_EQ(gaps.find("zero"), Gap::zero);
}

TEST(Words, OtherTextsAndValuesAreNone) {
  EXPECT_EQ(colours.find("Red"), std::nullopt);
  EXPECT_EQ(colours.find(""), std::nullopt);
  EXPECT_EQ(colours.find("dark_blue"), std::nullopt);
  EXPECT_EQ(colours.of(static_cast<Colour>(3)), "");
  EXPECT_EQ(gaps.of(static_cast<Gap>(1)), "");
}

TEST(Words, TextsAreInTheTablesOrder) { EXPECT_THAT(gaps.texts(), testing::ElementsAre("five", "zero", "three")); }

TEST(Words, TwoValuesMayShareAWordWhichReadsAsTheFirst) {
  constexpr auto shared = words<Colour>({{"warm", Colour::red}, {"cold", Colour::dark_blue}, {"cold", Colour::green2}});
  EXPECT_EQ(shared.of(Colour::green2), "cold");
  EXPECT_EQ(shared.of(Colour::dark_blue), "cold");
  EXPECT_EQ(shared.find("cold"), Colour::dark_blue);
}

// Checks that words() makes as it compiles.
TEST(Words, AMissingEnumeratorIsSeen) {
  constexpr Words<Colour, 2> without({{"red", Colour::red}, {"dark-blue", Colour::dark_blue}});
  static_assert(!detail::has_words_for_all<Colour>(without, std::make_index_sequence<64>()));
  static_assert(detail::has_words_for_all<Gap>(gaps, std::make_index_sequence<64>()));
  static_assert(detail::is_enumerator<Colour::green2>());
  static_assert(!detail::is_enumerator<static_cast<Colour>(7)>());
  static_assert(!detail::is_enumerator<static_cast<Gap>(1)>());
}

}  // namespace
}  // namespace swapd
