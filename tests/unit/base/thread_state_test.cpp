#include "base/thread_state.h"

#include <gtest/gtest.h>

#include <set>

namespace swapd {
namespace {

TEST(ThreadState, EachStateHasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (const auto& [state, text] : thread_states) {
    EXPECT_EQ(word(state), text);
    words.insert(text);
  }
  EXPECT_EQ(words.size(), thread_states.size());
}

TEST(ThreadState, AThreadThatIsHeldBackSleepsAndOneThatIsStoppedDoesNot) {
  EXPECT_TRUE(sleeps(ThreadState::blocked));
  EXPECT_TRUE(sleeps(ThreadState::virtual_runnable));
  EXPECT_TRUE(sleeps(ThreadState::delayed));
  for (const ThreadState state : {ThreadState::running, ThreadState::queued, ThreadState::stopped, ThreadState::frozen})
    EXPECT_FALSE(sleeps(state)) << word(state);
}

}  // namespace
}  // namespace swapd
