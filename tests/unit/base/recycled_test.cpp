#include "base/recycled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

namespace swapd {
namespace {

TEST(RecycledMemoryTest, WhatIsGivenBackServesTheNextOfItsSize) {
  void* const first = RecycledMemory::take(40);
  RecycledMemory::give_back(first, 40);
  void* const other = RecycledMemory::take(200);
  void* const second = RecycledMemory::take(64);
  EXPECT_NE(other, first);
  EXPECT_TRUE(!RecycledMemory::keeps || second == first);
  RecycledMemory::give_back(other, 200);
  RecycledMemory::give_back(second, 64);
}

TEST(RecycledMemoryTest, EachSizeHasRoomForWhatIsAskedFor) {
  for (std::size_t size = 0; size <= 2 * RecycledMemory::max_size; size = size * 2 + 1) {
    void* const memory = RecycledMemory::take(size);
    std::memset(memory, 0x5a, size);
    RecycledMemory::give_back(memory, size);
  }
}

// A sanitizer sees what goes beyond a block, is given back twice, or never.
TEST(RecycledMemoryTest, WhatIsTooMuchGoesBackToTheHeap) {
  std::vector<void*> all;
  for (std::size_t i = 0; i < 3 * RecycledMemory::max_kept_bytes / 4096; ++i) all.push_back(RecycledMemory::take(4096));
  for (void* const one : all) RecycledMemory::give_back(one, 4096);
}

TEST(RecycledMemoryTest, WhatIsKeptCanBeGivenToTheHeap) {
  RecycledMemory::give_back(RecycledMemory::take(100), 100);
  RecycledMemory::clear();
  RecycledMemory::clear();
  RecycledMemory::give_back(RecycledMemory::take(100), 100);
}

TEST(RecycledMemoryTest, AContainerMayEndOnAnotherThread) {
  HashMap<int, Vector<int>> made;
  for (int i = 0; i < 1000; ++i) made[i].assign(static_cast<std::size_t>(i % 50), i);
  std::thread([taken = std::move(made)]() mutable { taken.clear(); }).join();
}

TEST(RecycledMemoryTest, ContainersAreThoseOfTheLibraryOtherwise) {
  Set<int> set{3, 1, 2};
  Map<int, std::string> map{{2, "b"}, {1, "a"}};
  EXPECT_THAT(set, testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(map.begin()->second, "a");
  const Map<int, std::string> copy = map;
  EXPECT_EQ(copy, map);
}

}  // namespace
}  // namespace swapd
