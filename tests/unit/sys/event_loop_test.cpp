// The engine's event loop over eventfds and pipes: everything is ready before wait() is called, so no test waits.
#include "sys/process/event_loop.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace swapd::sys {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Registration = EventLoop::Registration;

class Signal {
 public:
  void set() const {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(fd_.get(), &one, sizeof one), 8);
  }
  void clear() const {
    std::uint64_t count = 0;
    (void)!::read(fd_.get(), &count, sizeof count);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  Fd fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

class Loop : public testing::Test {
 protected:
  Registration add(const Signal& signal, const std::string& name,
                   EventLoop::Urgency urgency = EventLoop::Urgency::at_once) {
    auto added = loop_.add(
        signal.fd(), [this, name](const EventLoop::Ready&) { called_.push_back(name); }, urgency);
    EXPECT_TRUE(added);
    return added ? std::move(added).value() : Registration();
  }
  std::vector<std::string> round() {
    called_.clear();
    loop_.wait(0ms);
    loop_.dispatch({});
    return called_;
  }

  EventLoop loop_;
  Signal one_, other_, third_;
  std::vector<std::string> called_;
};

TEST_F(Loop, CallsBackForWhatIsReadable) {
  const auto a = add(one_, "one"), b = add(other_, "other");
  one_.set();
  EXPECT_THAT(round(), ElementsAre("one"));
}

TEST_F(Loop, CallsBackForAllThatAreReadableInOneRound) {
  const auto a = add(one_, "one"), b = add(other_, "other");
  one_.set();
  other_.set();
  EXPECT_THAT(round(), UnorderedElementsAre("one", "other"));
}

TEST_F(Loop, CallsBackAgainAsLongAsItIsReadable) {
  const auto a = add(one_, "one");
  one_.set();
  EXPECT_THAT(round(), ElementsAre("one"));
  EXPECT_THAT(round(), ElementsAre("one"));
  one_.clear();
  EXPECT_THAT(round(), IsEmpty());
}

TEST_F(Loop, ARegistrationsEndTakesTheDescriptorOut) {
  one_.set();
  { const auto a = add(one_, "one"); }
  EXPECT_THAT(round(), IsEmpty());
  EXPECT_EQ(loop_.size(), 0U);
}

TEST_F(Loop, AMovedRegistrationIsOne) {
  auto a = add(one_, "one");
  one_.set();
  Registration b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(b);
  EXPECT_THAT(round(), ElementsAre("one"));
  b = add(other_, "other");  // its own comes out
  EXPECT_THAT(round(), IsEmpty());
  EXPECT_EQ(loop_.size(), 1U);
}

TEST_F(Loop, WhatCannotBeAddedIsAnErrorAndLeavesNothing) {
  const auto bad = loop_.add(-1, [](const EventLoop::Ready&) {});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code(), EBADF);
  const auto a = add(one_, "one");
  EXPECT_EQ(loop_.add(one_.fd(), [](const EventLoop::Ready&) {}).error().code(), EEXIST);
  EXPECT_EQ(loop_.size(), 1U);
}

TEST_F(Loop, WhatACallbackRemovesIsNotCalledInThisRound) {
  Registration a, b;
  a = std::move(loop_.add(one_.fd(), [&](const EventLoop::Ready&) { called_.emplace_back("one"), b.reset(); })).value();
  b = std::move(loop_.add(other_.fd(), [&](const EventLoop::Ready&) {
        called_.emplace_back("other"), a.reset();
      })).value();
  one_.set();
  other_.set();
  EXPECT_EQ(round().size(), 1U);
  EXPECT_EQ(loop_.size(), 1U);
}

TEST_F(Loop, ACallbackMayRemoveItself) {
  Registration a;
  const std::string name = "a name that does not fit into the function object itself";
  a = std::move(loop_.add(one_.fd(), [&, name](const EventLoop::Ready&) {
        a.reset();
        called_.push_back(name);  // what it captured is still there
      })).value();
  one_.set();
  EXPECT_THAT(round(), ElementsAre(name));
  EXPECT_THAT(round(), IsEmpty());
}

TEST_F(Loop, ACallbackMayAddOthersThatAreCalledInTheNextRound) {
  std::vector<Registration> added;
  const auto a = std::move(loop_.add(one_.fd(), [&](const EventLoop::Ready&) {
                   one_.clear();
                   added.push_back(add(other_, "other"));
                   added.push_back(add(third_, "third"));
                 })).value();
  for (const Signal* signal : {&one_, &other_, &third_}) signal->set();
  EXPECT_THAT(round(), IsEmpty());
  EXPECT_THAT(round(), UnorderedElementsAre("other", "third"));
}

TEST_F(Loop, AnEventOfAnEarlierUseOfAPlaceIsNobodys) {
  auto a = add(one_, "one");
  one_.set();
  ASSERT_EQ(loop_.wait(0ms), 1U);
  a.reset();
  const auto b = add(other_, "other");  // in the place that has become free
  loop_.dispatch({});
  EXPECT_THAT(called_, IsEmpty());
}

TEST_F(Loop, TellsOfAHangUpAndOfTheTime) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  std::optional<EventLoop::Ready> seen;
  const auto a = std::move(loop_.add(reader.get(), [&](const EventLoop::Ready& ready) { seen = ready; })).value();
  writer.reset();
  ASSERT_EQ(loop_.wait(0ms), 1U);
  loop_.dispatch(Time{7s});
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->hung_up);
  EXPECT_EQ(seen->now, Time{7s});
}

TEST_F(Loop, ARoundCanWaitIfAllOfItsEventsCan) {
  const auto a = add(one_, "one", EventLoop::Urgency::can_wait), b = add(other_, "other");
  loop_.wait(0ms);
  EXPECT_FALSE(loop_.can_wait()) << "nothing was found";
  one_.set();
  loop_.wait(0ms);
  EXPECT_TRUE(loop_.can_wait());
  other_.set();
  loop_.wait(0ms);
  EXPECT_FALSE(loop_.can_wait());
}

TEST_F(Loop, WaitsNoLongerThanItsTimeout) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(loop_.wait(20ms), 0U);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
  EXPECT_EQ(loop_.wait(-5s), 0U) << "a time that has passed is no wait";
}

}  // namespace
}  // namespace swapd::sys
