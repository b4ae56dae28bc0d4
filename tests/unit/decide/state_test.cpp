// A decider's state as a row of numbers and back.
#include "decide/state.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::StateReader;
using decide::StateWriter;

template <typename T>
T there_and_back(const T& value) {
  StateWriter writer;
  writer(value);
  StateReader reader(writer.numbers());
  T out{};
  reader(out);
  EXPECT_TRUE(reader.good());
  return out;
}

TEST(State, EachKindOfValueComesBackAsItWas) {
  EXPECT_EQ(there_and_back(true), true);
  EXPECT_EQ(there_and_back(-3.25), -3.25);
  EXPECT_EQ(there_and_back(std::uint64_t{UINT64_MAX}), UINT64_MAX);
  EXPECT_EQ(there_and_back(Duration(milliseconds(-7))), milliseconds(-7));
  EXPECT_EQ(there_and_back(p3), p3);
  EXPECT_EQ(there_and_back(r4), r4);
  EXPECT_EQ(there_and_back(fifo(7)), fifo(7));
  EXPECT_EQ(there_and_back(std::optional<ThreadId>{}), std::nullopt);
}

TEST(State, SoDoContainers) {
  const std::map<ThreadId, std::vector<Resource>> nested{{p1, {r1, r2}}, {p2, {}}};
  EXPECT_EQ(there_and_back(nested), nested);
  const std::unordered_map<ThreadId, std::set<int>> other{{p1, {3, 1}}, {p2, {2}}};
  EXPECT_EQ(there_and_back(other), other);
  EXPECT_EQ(there_and_back(std::deque<int>{1, 2, 3}), (std::deque<int>{1, 2, 3}));
}

TEST(State, EqualContainersAreWrittenAlikeWhateverTheirHistory) {
  std::unordered_map<ThreadId, int> one, two;
  for (int i = 1; i < 50; ++i) one[thread(i)] = i;
  for (int i = 49; i > 0; --i) two[thread(i)] = i;
  StateWriter first, second;
  first(one);
  second(two);
  EXPECT_EQ(first.numbers(), second.numbers());
}

TEST(State, PlacesOfTimesAreKnown) {
  StateWriter writer;
  writer(1, Time(milliseconds(5)), 2, Time(milliseconds(6)));
  EXPECT_EQ(writer.times(), (std::vector<std::uint32_t>{1, 3}));
}

TEST(State, ARowThatIsTooShortOrTooLongIsNotGood) {
  StateWriter writer;
  writer(std::vector<int>{1, 2, 3});
  std::vector<std::int64_t> numbers = writer.numbers();
  std::vector<int> out;
  numbers.push_back(4);
  StateReader longer(numbers);
  longer(out);
  EXPECT_FALSE(longer.good());
  numbers.resize(2);
  StateReader shorter(numbers);
  shorter(out);
  EXPECT_FALSE(shorter.good());
}

TEST(State, ACountThatCannotBeIsNotBelieved) {
  const std::vector<std::int64_t> numbers{INT64_MAX, 1};
  StateReader reader(numbers);
  std::vector<int> out;
  reader(out);
  EXPECT_FALSE(reader.good());
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace swapd::test
