// The kernel's programs tell of messages and wake-ups for threads that were named, once each time.
#include "sys/bpf/message_calls.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>
#include <thread>

#include "base/fd.h"

namespace swapd::sys {
namespace {

class MessageCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = MessageCalls::open();
    if (!opened) GTEST_SKIP() << opened.error().text();
    calls_ = std::move(opened).value();
    const Status attached = calls_->attach();
    ASSERT_TRUE(attached) << attached.error().text();
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    own_ = Fd(ends[0]);
    other_ = Fd(ends[1]);
  }
  void ask() const {
    char byte = 0;
    ASSERT_EQ(::recv(own_.get(), &byte, 1, MSG_DONTWAIT), -1);
  }
  void receive() const {
    char byte = 0;
    ASSERT_EQ(::recv(own_.get(), &byte, 1, MSG_DONTWAIT), 1);
  }
  void send() const { ASSERT_EQ(::send(other_.get(), "", 1, 0), 1); }
  // The threads that were told of within a second.
  std::vector<pid_t> told(int within_ms = 1000) {
    pollfd ready{.fd = calls_->fd(), .events = POLLIN, .revents = 0};
    std::vector<pid_t> tids;
    if (::poll(&ready, 1, within_ms) != 1) return tids;
    for (const MessageCalls::Call& call : calls_->read()) tids.push_back(call.tid);
    return tids;
  }
  // The sockets' tracepoints are there since Linux 6.3.
  bool hears_sockets() {
    (void)calls_->listen(tid_);
    ask();
    send();
    const bool hears = !told(200).empty();
    receive();
    return hears;
  }

  const pid_t tid_ = ::gettid();
  std::unique_ptr<MessageCalls> calls_;
  Fd own_, other_;
};

TEST_F(MessageCallsTest, AMessageIsToldOnceEachTimeThatTheThreadIsNamed) {
  if (!hears_sockets()) GTEST_SKIP() << "the kernel has no tracepoints of sockets' messages";
  EXPECT_FALSE(calls_->listen(tid_).waits);
  send();
  EXPECT_THAT(told(), testing::ElementsAre(tid_));
  send();
  EXPECT_THAT(told(0), testing::IsEmpty());
}

TEST_F(MessageCallsTest, AMessageThatIsThereAlreadyIsSaidAtOnce) {
  if (!hears_sockets()) GTEST_SKIP() << "the kernel has no tracepoints of sockets' messages";
  const std::uint32_t before = calls_->listen(tid_).messages;
  send();
  EXPECT_THAT(told(), testing::ElementsAre(tid_));
  EXPECT_TRUE(calls_->listen(tid_).waits);
  EXPECT_EQ(calls_->listen(tid_).messages, before + 1);
  receive();
  EXPECT_FALSE(calls_->listen(tid_).waits);
  EXPECT_THAT(told(0), testing::IsEmpty());
}

TEST_F(MessageCallsTest, AWakeUpIsTold) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd reading(ends[0]), writing(ends[1]);
  EXPECT_FALSE(calls_->listen(tid_).waits);
  std::thread waker([&] {
    // Only a reader that sleeps is woken.
    const std::string state = "/proc/self/task/" + std::to_string(tid_) + "/stat";
    for (std::string text; text.find(") S ") == std::string::npos;) std::getline(std::ifstream(state), text);
    (void)!::write(writing.get(), "", 1);
  });
  char byte = 0;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 1);
  waker.join();
  EXPECT_THAT(told(), testing::Contains(tid_));
}

TEST_F(MessageCallsTest, NothingIsToldOnceTheProgramsAreDetached) {
  if (!hears_sockets()) GTEST_SKIP() << "the kernel has no tracepoints of sockets' messages";
  calls_->detach();
  EXPECT_FALSE(calls_->listen(tid_).waits);
  send();
  EXPECT_THAT(told(0), testing::IsEmpty());
}

}  // namespace
}  // namespace swapd::sys
