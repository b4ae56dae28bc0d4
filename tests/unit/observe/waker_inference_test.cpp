#include "observe/seccomp/waker_inference.h"

#include <gtest/gtest.h>

namespace swapd::observe {
namespace {

class WakerInferenceTest : public testing::Test {
 protected:
  static constexpr ThreadId client{10, 1}, server{20, 1}, other{30, 1};
  const Resource socket{ResourceKind::socket, {1}};
  const Resource pipe{ResourceKind::pipe, {2}};
  static Time at(int ms) { return Time{std::chrono::hours(1) + std::chrono::milliseconds(ms)}; }
  void block(int ms, std::vector<Resource> for_these) {
    Blocked blocked;
    blocked.thread = client;
    blocked.time = at(ms);
    blocked.awaited = std::move(for_these);
    inference_.on_blocked(blocked);
  }
  Woken wake(int ms) {
    Woken woken;
    woken.thread = client;
    woken.time = at(ms);
    inference_.name(woken);
    return woken;
  }
  WakerInference inference_;
};

TEST_F(WakerInferenceTest, ATracedWakerIsBelievedBeforeAnAccess) {
  block(0, {socket});
  inference_.on_access(socket, other, at(1));
  inference_.on_wake(client.tid, server, at(2));
  EXPECT_EQ(wake(3).by, server);
}

TEST_F(WakerInferenceTest, AWakeBeforeTheWaitDoesNotCount) {
  inference_.on_wake(client.tid, server, at(0));
  block(1, {socket});
  EXPECT_FALSE(wake(2).by);
}

TEST_F(WakerInferenceTest, TheLatestOfSeveralWakesCounts) {
  block(0, {socket});
  inference_.on_wake(client.tid, server, at(2));
  inference_.on_wake(client.tid, other, at(1));
  EXPECT_EQ(wake(3).by, server);
}

TEST_F(WakerInferenceTest, TheLastToTouchWhatWasAwaitedIsTheWaker) {
  block(0, {socket});
  inference_.on_access(socket, server, at(1));
  inference_.on_access(pipe, other, at(2));
  const Woken woken = wake(3);
  EXPECT_EQ(woken.by, server);
  EXPECT_EQ(woken.through, socket);
}

TEST_F(WakerInferenceTest, AnAccessBeforeTheWaitOrOfItsOwnDoesNotCount) {
  inference_.on_access(socket, server, at(0));
  block(1, {socket});
  inference_.on_access(socket, client, at(2));
  EXPECT_FALSE(wake(3).by);
}

TEST_F(WakerInferenceTest, WhatIsResolvedLaterCounts) {
  block(0, {});
  inference_.on_access(pipe, server, at(1));
  Blocked found;
  found.thread = client;
  found.awaited = {pipe};
  inference_.on_resolved(found);
  EXPECT_EQ(wake(2).by, server);
}

TEST_F(WakerInferenceTest, OldAccessesAreForgotten) {
  block(0, {socket});
  inference_.on_access(socket, server, at(1));
  for (std::size_t i = 0; i < WakerInference::max_recent; ++i) inference_.on_access(pipe, other, at(2));
  inference_.forget_old();
  EXPECT_FALSE(wake(3).by);
}

TEST_F(WakerInferenceTest, AThreadThatHasGoneIsNamedNoMore) {
  block(0, {socket});
  inference_.on_access(socket, server, at(1));
  inference_.forget(server);
  EXPECT_FALSE(wake(2).by);
  inference_.on_access(socket, server, at(3));
  inference_.unwatch(client);
  EXPECT_FALSE(wake(4).by);
}

}  // namespace
}  // namespace swapd::observe
