// Samplers are opened by another thread, and only as long as they are wanted.
#include "engine/sampler_opener.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace swapd::daemon {
namespace {

constexpr Duration period = std::chrono::milliseconds(1);
constexpr pid_t no_thread = 5'000'000;  // of this machine (proc(5), pid_max)

std::vector<SamplerOpener::Opened> taken(SamplerOpener& opener, std::size_t count) {
  std::vector<SamplerOpener::Opened> out;
  while (out.size() < count) {
    for (auto& one : opener.take()) out.push_back(std::move(one));
    std::this_thread::yield();
  }
  return out;
}

TEST(SamplerOpenerTest, GivesOneForEachThreadThatWasAskedFor) {
  SamplerOpener opener(period);
  opener.ask(no_thread);
  opener.ask(::gettid());
  const auto opened = taken(opener, 2);
  ASSERT_EQ(opened.size(), 2U);
  EXPECT_EQ(opened[0].tid, no_thread);
  EXPECT_EQ(opened[0].sampler, nullptr) << "there is no such thread";
  EXPECT_EQ(opened[1].tid, ::gettid());
}

TEST(SamplerOpenerTest, WhatIsDroppedIsNotGiven) {
  SamplerOpener opener(period);
  opener.ask(no_thread);
  opener.drop(no_thread);
  opener.ask(::gettid());
  const auto opened = taken(opener, 1);
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].tid, ::gettid());
}

TEST(SamplerOpenerTest, EndsWithQuestionsThatAreOpen) {
  SamplerOpener opener(period);
  for (int i = 0; i < 100; ++i) opener.ask(::gettid());
}

}  // namespace
}  // namespace swapd::daemon
