#include "observe/resolve/socket_peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace swapd::observe {
namespace {

using sys::InetAddress;
using sys::InetSocket;
using sys::UnixSocket;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

UnixSocket unix_socket(std::uint64_t inode, int type, std::uint64_t peer, std::string name = {}) {
  UnixSocket out;
  out.inode = inode;
  out.type = type;
  out.peer = peer;
  out.name = std::move(name);
  return out;
}

InetAddress v4(std::uint8_t last, std::uint16_t port) {
  InetAddress out;
  out.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, last};
  if (last == 0) out.bytes[12] = 0;  // 0.0.0.0
  out.port = port;
  return out;
}

InetAddress v6(std::uint8_t last, std::uint16_t port) {
  InetAddress out;
  out.bytes[15] = last;
  out.port = port;
  return out;
}

InetSocket inet(std::uint64_t inode, int protocol, InetAddress local, InetAddress remote = {}) {
  InetSocket out;
  out.inode = inode;
  out.protocol = protocol;
  out.local = local;
  out.remote = remote;
  return out;
}

InetSocket listening(std::uint64_t inode, InetAddress local) {
  InetSocket out = inet(inode, IPPROTO_TCP, local);
  out.listening = true;
  return out;
}

TEST(UnixPeers, AConnectionHasOneForLife) {
  const Peers out = unix_peers(unix_socket(1, SOCK_STREAM, 2), {});
  EXPECT_THAT(out.inodes, ElementsAre(2));
  EXPECT_TRUE(out.stable);
}

TEST(UnixPeers, BeforeTheServerAcceptsItIsTheListener) {
  UnixSocket server = unix_socket(9, SOCK_STREAM, 0, "/run/s");
  server.listening = true;
  server.pending = {5, 1};
  const Peers out = unix_peers(unix_socket(1, SOCK_STREAM, 0), {unix_socket(7, SOCK_STREAM, 8), server});
  EXPECT_THAT(out.inodes, ElementsAre(9));
  EXPECT_FALSE(out.stable);
}

TEST(UnixPeers, AListenerAndTheLostAwaitThemselves) {
  UnixSocket server = unix_socket(9, SOCK_STREAM, 0);
  server.listening = true;
  EXPECT_THAT(unix_peers(server, {}).inodes, ElementsAre(9));
  EXPECT_THAT(unix_peers(unix_socket(1, SOCK_STREAM, 0), {}).inodes, ElementsAre(1));
}

TEST(UnixPeers, ADatagramServerAwaitsThoseConnectedToIt) {
  const Peers out = unix_peers(unix_socket(1, SOCK_DGRAM, 0, "/run/d"),
                               {unix_socket(2, SOCK_DGRAM, 1), unix_socket(3, SOCK_DGRAM, 1),
                                unix_socket(4, SOCK_DGRAM, 9), unix_socket(5, SOCK_DGRAM, 0, "/run/other")});
  EXPECT_THAT(out.inodes, ElementsAre(2, 3));
  EXPECT_FALSE(out.stable);
}

TEST(UnixPeers, DatagramsWithoutConnectionsComeFromWhoHasAName) {
  const Peers out = unix_peers(unix_socket(1, SOCK_DGRAM, 0, "/run/d"),
                               {unix_socket(5, SOCK_DGRAM, 0, "/run/other"), unix_socket(6, SOCK_DGRAM, 0),
                                unix_socket(7, SOCK_STREAM, 0, "x")});
  EXPECT_THAT(out.inodes, ElementsAre(5));
}

TEST(InetPeers, TheReversedPairOfAddresses) {
  const InetSocket own = inet(1, IPPROTO_TCP, v4(1, 4000), v4(1, 80));
  const Peers out = inet_peers(own, {own, inet(2, IPPROTO_TCP, v4(1, 80), v4(1, 4001)), listening(3, v4(0, 80)),
                                     inet(4, IPPROTO_TCP, v4(1, 80), v4(1, 4000))});
  EXPECT_THAT(out.inodes, ElementsAre(4));
  EXPECT_TRUE(out.stable);
}

TEST(InetPeers, NotAcceptedYetIsTheListener) {
  const InetSocket own = inet(1, IPPROTO_TCP, v4(1, 4000), v4(1, 80));
  // The accepted side has no inode while it waits in the queue.
  const Peers out = inet_peers(own, {own, inet(0, IPPROTO_TCP, v4(1, 80), v4(1, 4000)), listening(3, v4(0, 80))});
  EXPECT_THAT(out.inodes, ElementsAre(3));
  EXPECT_FALSE(out.stable);
}

TEST(InetPeers, ARemoteEndLeavesOnlyItself) {
  EXPECT_THAT(inet_peers(inet(1, IPPROTO_TCP, v4(1, 4000), v4(9, 443)), {listening(3, v4(1, 443))}).inodes,
              ElementsAre(1));
}

// One dump answers for every connection of this machine that is accepted.
TEST(InetPeers, BothEndsOfEachConnection) {
  std::vector<InetSocket> all{listening(1, v4(1, 80))};
  constexpr std::uint16_t clients = 3;
  for (std::uint16_t i = 0; i < clients; ++i) {
    all.push_back(inet(10 + i, IPPROTO_TCP, v4(1, 5000 + i), v4(1, 80)));
    all.push_back(inet(20 + i, IPPROTO_TCP, v4(1, 80), v4(1, 5000 + i)));
  }
  all.push_back(inet(30, IPPROTO_TCP, v4(1, 6000), v4(1, 80)));  // not accepted yet: its other end has no inode
  all.push_back(inet(0, IPPROTO_TCP, v4(1, 80), v4(1, 6000)));
  all.push_back(inet(31, IPPROTO_TCP, v4(1, 7000), v4(9, 80)));  // leaves the machine
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  for (const Connected& one : connected_pairs(all)) found.emplace_back(one.inode, one.peer);
  EXPECT_THAT(found, UnorderedElementsAre(std::pair(10, 20), std::pair(20, 10), std::pair(11, 21), std::pair(21, 11),
                                          std::pair(12, 22), std::pair(22, 12)));
}

TEST(InetPeers, WildcardsOfBothFamilies) {
  InetSocket wildcard = listening(3, v6(0, 80));
  wildcard.v6 = true;
  EXPECT_EQ(inet_listener(v4(1, 80), IPPROTO_TCP, {wildcard}), 3U);
  EXPECT_EQ(inet_listener(v6(1, 80), IPPROTO_TCP, {wildcard}), 3U);
  wildcard.v6_only = true;
  EXPECT_EQ(inet_listener(v4(1, 80), IPPROTO_TCP, {wildcard}), 0U);
  EXPECT_EQ(inet_listener(v6(1, 80), IPPROTO_TCP, {listening(4, v4(0, 80))}), 0U);
  EXPECT_EQ(inet_listener(v4(1, 80), IPPROTO_TCP, {listening(4, v4(0, 80)), listening(5, v4(1, 80))}), 5U);
  EXPECT_EQ(inet_listener(v4(1, 81), IPPROTO_TCP, {listening(4, v4(0, 80))}), 0U);
}

TEST(UdpPeers, AClientAwaitsItsServer) {
  const InetSocket own = inet(1, IPPROTO_UDP, v4(1, 4000), v4(1, 53));
  EXPECT_THAT(inet_peers(own, {own, inet(2, IPPROTO_UDP, v4(0, 53)), inet(3, IPPROTO_UDP, v4(0, 54))}).inodes,
              ElementsAre(2));
  const InetSocket connected = inet(4, IPPROTO_UDP, v4(1, 53), v4(1, 4000));
  EXPECT_THAT(inet_peers(own, {own, inet(2, IPPROTO_UDP, v4(0, 53)), connected}).inodes, ElementsAre(4));
}

TEST(UdpPeers, AServerAwaitsItsClients) {
  const InetSocket own = inet(1, IPPROTO_UDP, v4(0, 53));
  const InetSocket a = inet(2, IPPROTO_UDP, v4(1, 4000), v4(1, 53));
  const InetSocket b = inet(3, IPPROTO_UDP, v4(1, 4001), v4(1, 53));
  const InetSocket stranger = inet(4, IPPROTO_UDP, v4(1, 4002));
  EXPECT_THAT(inet_peers(own, {own, a, b, stranger}).inodes, UnorderedElementsAre(2, 3));
}

TEST(UdpPeers, WithoutConnectionsAnybodyWhoIsFree) {
  const InetSocket own = inet(1, IPPROTO_UDP, v4(0, 53));
  const InetSocket elsewhere = inet(2, IPPROTO_UDP, v4(1, 4000), v4(1, 99));
  const Peers out = inet_peers(own, {own, elsewhere, inet(3, IPPROTO_UDP, v4(1, 4001))});
  EXPECT_THAT(out.inodes, ElementsAre(3));
  EXPECT_FALSE(out.stable);
}

TEST(UdpPeers, CandidatesAreBounded) {
  std::vector<InetSocket> all;
  for (std::uint64_t i = 2; i < 1000; ++i) all.push_back(inet(i, IPPROTO_UDP, v4(1, static_cast<std::uint16_t>(i))));
  EXPECT_EQ(inet_peers(inet(1, IPPROTO_UDP, v4(0, 53)), all).inodes.size(), 32U);
}

class Credit : public testing::Test {
 protected:
  static constexpr Duration cost = std::chrono::milliseconds(4);
  // How many looks may be taken in a time without a pause between them.
  int looks_in(Duration lasts) {
    int looks = 0;
    for (const Time end = now_ + lasts; now_ < end;) {
      if (now_ < credit_.next()) {
        now_ = std::min(credit_.next(), end);
        continue;
      }
      now_ += cost;
      credit_.pay(cost, now_);
      ++looks;
    }
    return looks;
  }
  LookCredit credit_{50};
  Time now_{std::chrono::hours(1)};
};

TEST_F(Credit, HoldsAFiftiethOfFiveSeconds) {
  const int at_once = looks_in(std::chrono::milliseconds(100));
  EXPECT_GE(at_once, 24);
  EXPECT_NEAR(looks_in(std::chrono::seconds(20)), 20 * 1000 / (50 * 4), 1) << "from then on a fiftieth of the time";
}

TEST_F(Credit, IsNotSavedForLonger) {
  (void)looks_in(std::chrono::seconds(1));
  now_ += std::chrono::minutes(10);
  const int looks = looks_in(std::chrono::seconds(1));
  EXPECT_GE(looks, 25);
  EXPECT_LE(looks, 31);
}

}  // namespace
}  // namespace swapd::observe
