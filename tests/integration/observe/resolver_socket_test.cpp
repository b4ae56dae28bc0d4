#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <thread>

#include "blocked_program.h"
#include "observe/resolve/socket_peers.h"

namespace swapd::observe {
namespace {

std::string scenario_name(const testing::TestParamInfo<const char*>& test) { return test_name(test.param); }

class SocketWait : public ResolverTest, public testing::WithParamInterface<const char*> {};

TEST_P(SocketWait, NamesTheOtherEnd) {
  const Story story = start("socket", GetParam());
  expect_provider(story, ResourceKind::socket);
}

INSTANTIATE_TEST_SUITE_P(Sockets, SocketWait,
                         testing::Values("pair-stream", "pair-dgram", "pair-seqpacket", "pair-write", "unix-stream",
                                         "unix-seqpacket", "unix-unaccepted", "unix-dgram", "tcp", "tcp6",
                                         "tcp-unaccepted", "udp-client", "udp-server", "udp6-server",
                                         "udp-unconnected"),
                         scenario_name);

using Sockets = ResolverTest;

TEST_F(Sockets, TheEngineKnowsThePeerOnceTheWorkerHasAsked) {
  const Story story = start("socket", "unix-stream");
  EXPECT_FALSE(resolver_.quick(story.site).complete);
  EXPECT_TRUE(resolver_.quick(story.site).awaited.empty());
  EXPECT_TRUE(resolver_.full(story.site).complete);
  expect_quick(story);
}

TEST_F(Sockets, APeerThatHasNotAcceptedIsAskedForAgain) {
  ManualClock clock;
  Resolver resolver(procfs_, diag_, &clock);
  const Story story = start("socket", "tcp-unaccepted");
  const Wait full = resolver.full(story.site);
  EXPECT_TRUE(resolver.quick(story.site).complete);
  clock.advance(std::chrono::milliseconds(60));
  const Wait later = resolver.quick(story.site);
  EXPECT_FALSE(later.complete);
  EXPECT_EQ(later.awaited, full.awaited);
}

std::uint64_t inode_of(const Fd& fd) {
  struct stat st {};
  ::fstat(fd.get(), &st);
  return st.st_ino;
}

// Connections of this process to itself.
class Connections : public Sockets {
 protected:
  struct Pair {
    Fd client, accepted;
  };
  void SetUp() override {
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address_), size_), 0);
    ASSERT_EQ(::listen(listener_.get(), 4), 0);
    ASSERT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address_), &size_), 0);
  }
  [[nodiscard]] Pair connect() const {
    Pair out{Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), Fd()};
    EXPECT_EQ(::connect(out.client.get(), reinterpret_cast<const sockaddr*>(&address_), size_), 0);
    out.accepted = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(out.accepted);
    return out;
  }
  [[nodiscard]] std::uint16_t port() const { return ntohs(address_.sin_port); }

 private:
  Fd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address_{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size_ = sizeof address_;
};

// The kernel finds an internet socket only by dumping them all.
TEST_F(Connections, OneQuestionAnswersForEachOfTheMachine) {
  const std::array<Pair, 3> pairs{connect(), connect(), connect()};
  SteadyClock clock;
  SocketPeers peers(diag_, clock);
  ASSERT_TRUE(peers.look(::getpid(), inode_of(pairs[0].client)).peers);
  for (const Pair& pair : pairs) {
    const auto known = peers.cached(inode_of(pair.client)), other = peers.cached(inode_of(pair.accepted));
    ASSERT_TRUE(known && other);
    EXPECT_THAT(known->peers.inodes, testing::ElementsAre(inode_of(pair.accepted)));
    EXPECT_THAT(other->peers.inodes, testing::ElementsAre(inode_of(pair.client)));
    EXPECT_TRUE(known->peers.stable);
  }
}

// Each question takes two seconds of CPU time, of which a fiftieth is to be had.
TEST_F(Connections, ANewOneIsAskedForLaterWhereQuestionsTookMuch) {
  ManualClock clock;
  clock.advance(std::chrono::hours(1));
  Duration used{};
  SocketPeers peers(diag_, clock, [&] { return used += std::chrono::seconds(2); });
  const Pair first = connect();
  ASSERT_TRUE(peers.look(::getpid(), inode_of(first.client)).peers);
  const Pair second = connect();
  const auto refused = peers.look(::getpid(), inode_of(second.client));
  EXPECT_FALSE(refused.peers);
  EXPECT_TRUE(peers.look(::getpid(), inode_of(first.client)).peers) << "which is known for life";
  ASSERT_NE(refused.again, Time::max());
  clock.set(refused.again);
  const auto later = peers.look(::getpid(), inode_of(second.client));
  ASSERT_TRUE(later.peers);
  EXPECT_THAT(later.peers->inodes, testing::ElementsAre(inode_of(second.accepted)));
}

// Beside busy loops a dump may be preempted for long.
TEST_F(Connections, AQuestionThatWasPreemptedCostsNoMore) {
  class Preempted : public Clock {
   public:
    [[nodiscard]] Time now() const override { return time_ += std::chrono::seconds(1); }

   private:
    mutable Time time_{std::chrono::hours(1)};
  } const clock;
  Duration used{};
  SocketPeers peers(diag_, clock, [&] { return used += std::chrono::milliseconds(1); });
  const Pair first = connect();
  ASSERT_TRUE(peers.look(::getpid(), inode_of(first.client)).peers);
  const Pair second = connect();
  EXPECT_TRUE(peers.look(::getpid(), inode_of(second.client)).peers);
}

TEST_F(Connections, ThatWereClosedAreNotAmongThem) {
  Pair closed = connect();
  closed.client.reset();
  closed.accepted.reset();
  const auto all = diag_.inet_sockets(0, IPPROTO_TCP);
  ASSERT_TRUE(all);
  EXPECT_THAT(*all, testing::Not(testing::Contains(testing::AllOf(
                        testing::Field(&sys::InetSocket::listening, false),
                        testing::ResultOf([](const auto& s) { return s.remote.port; }, testing::Eq(port()))))))
      << "the client's end is in TIME_WAIT";
}

// Who connects is known from history alone: the listening socket is awaited, and nobody holds its other end.
TEST_F(Sockets, AcceptAwaitsTheListeningSocketItself) {
  const Story story = start("socket", "accept");
  EXPECT_EQ(story.site.nr, SYS_accept);
  expect_quick(story);
  const Wait wait = resolver_.quick(story.site);
  const auto own = procfs_.fd_identity(story.waiter, static_cast<int>(story.site.args[0]));
  ASSERT_TRUE(own.ok());
  EXPECT_THAT(wait.awaited, testing::ElementsAre(socket_endpoint(own->ino)));
  EXPECT_THAT(providers(story, wait.awaited), testing::IsEmpty());
}

class ConnectWait : public ResolverTest, public testing::WithParamInterface<const char*> {};

TEST_P(ConnectWait, NamesTheServer) {
  Story story = start("socket", GetParam());
  story.site = blocked(story.waiter, {SYS_connect});
  EXPECT_FALSE(resolver_.quick(story.site).complete);
  expect_provider(story, ResourceKind::socket);
}

INSTANTIATE_TEST_SUITE_P(Sockets, ConnectWait, testing::Values("connect-unix", "connect-path", "connect-tcp"),
                         scenario_name);

TEST_F(Sockets, ACallerProvidesItsOwnEndpoint) {
  const Story story = start("socket", "pair-stream");
  const Access access = resolver_.access(story.site);
  const auto own = procfs_.fd_identity(story.waiter, static_cast<int>(story.site.args[0]));
  ASSERT_TRUE(own.ok());
  EXPECT_TRUE(access.complete);
  EXPECT_THAT(access.accessed, testing::ElementsAre(socket_endpoint(own->ino)));
}

TEST_F(Sockets, AConnectorProvidesTheListeningSocket) {
  Story story = start("socket", "connect-unix");
  story.site = blocked(story.waiter, {SYS_connect});
  EXPECT_FALSE(resolver_.access(story.site).complete);
  const Access access = resolver_.full_access(story.site);
  const Wait wait = resolver_.full(story.site);
  EXPECT_THAT(access.accessed, testing::IsSupersetOf(wait.awaited));
}

// The engine asks while the worker and the control thread do; for the thread sanitizer above all.
TEST_F(Sockets, EngineAndWorkerAtOnce) {
  const Story story = start("socket", "unix-stream");
  const Wait expected = resolver_.full(story.site);
  std::thread worker([&] {
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(resolver_.full(story.site).awaited, expected.awaited);
      EXPECT_EQ(resolver_.scan(story.waiter, expected.awaited, story.members).size(), 1U);
    }
  });
  std::thread control([&] {
    for (int i = 0; i < 200; ++i) EXPECT_EQ(resolver_.scan(story.waiter, expected.awaited, story.members).size(), 1U);
  });
  for (int i = 0; i < 1000; ++i) {
    const Wait wait = resolver_.quick(story.site);
    EXPECT_TRUE(!wait.complete || wait.awaited == expected.awaited);
    resolver_.forget(story.site.tgid);
  }
  worker.join();
  control.join();
}

// A process of another network namespace is asked about in there.
TEST_F(Sockets, OtherNetworkNamespaces) {
  Child child({"/usr/bin/unshare", "-n", "/bin/sh", "-c",
               "ip link set lo up 2>/dev/null || exit 3; exec " TEST_PROGRAMS "/block_socket tcp"});
  Story story;
  const std::string line = child.line();
  if (line.empty()) GTEST_SKIP() << "no network namespace to be had (unshare, ip)";
  ASSERT_EQ(std::sscanf(line.c_str(), "%d %d", &story.waiter, &story.provider), 2) << line;
  story.site = blocked(story.waiter, {SYS_read});
  story.members = {story.waiter, story.provider};
  expect_provider(story, ResourceKind::socket);
}

TEST_F(Sockets, AProviderOutsideTheMembersIsNamedApart) {
  Story story = start("socket", "unix-stream");
  story.members = {story.waiter};
  const Wait wait = resolver_.full(story.site);
  const auto found = resolver_.scan(story.waiter, wait.awaited, story.members);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].threads, testing::IsEmpty());
  ASSERT_EQ(found[0].unenrolled.size(), 1U);
  EXPECT_EQ(found[0].unenrolled[0].tid, story.provider);
}

// As a message bus does with each client's: the table of its descriptors was read before.
TEST_F(Sockets, AProcessOutsideTheMembersThatHasJustGotTheSocketIsFound) {
  Story story = start("socket", "unix-stream");
  story.members = {story.waiter};
  ASSERT_EQ(resolver_.scan(story.waiter, resolver_.full(story.site).awaited, story.members).size(), 1U);
  const Fd fresh(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct stat st {};
  ASSERT_EQ(::fstat(fresh.get(), &st), 0);
  const std::array awaited{Resource{ResourceKind::socket, {st.st_ino}}};
  const auto found = resolver_.scan(story.waiter, awaited, story.members);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].unenrolled.size(), 1U);
  EXPECT_EQ(found[0].unenrolled[0].tid, ::getpid());
}

}  // namespace
}  // namespace swapd::observe
