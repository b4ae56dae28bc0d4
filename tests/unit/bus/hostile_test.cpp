// Strangers on the private socket: each is dropped alone, nobody else notices, and they cannot take all the places.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string_view>

#include "bus_client.h"
#include "fakes/bus_fixture.h"
#include "fakes/send_descriptors.h"

namespace swapd::bus {
namespace {

using fakes::BusThread;
using namespace std::string_literals;

// True once the server has closed its end; false after ten seconds.
bool closed(const Fd& fd) {
  char buffer[256];
  for (;;) {
    pollfd waiting{fd.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 10'000) <= 0) return false;
    if (::recv(fd.get(), buffer, sizeof buffer, 0) <= 0) return true;
  }
}

void send_bytes(const Fd& fd, std::string_view bytes) {
  // The server may close on us midway: that is what the test is about.
  [[maybe_unused]] const ssize_t sent = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// A call of Status, as it goes over the wire (D-Bus specification, Message Protocol).
std::string status_call(std::uint32_t serial, std::uint32_t descriptors = 0) {
  std::string out("l\1\0\1\0\0\0\0", 8);
  const auto number = [&](std::uint32_t value) { out.append(reinterpret_cast<const char*>(&value), 4); };
  const auto pad = [&] { out.resize((out.size() + 7) / 8 * 8); };
  const auto field = [&](char code, char type, const std::string& value) {
    pad();
    out += {code, 1, type, 0};
    number(static_cast<std::uint32_t>(value.size()));
    out += value + '\0';
  };
  number(serial);
  number(0);  // the size of the fields: below
  field(1, 'o', object_path);
  field(2, 's', interface_name);
  field(3, 's', "Status");
  if (descriptors != 0) {
    pad();
    out += {9, 1, 'u', 0};
    number(descriptors);
  }
  const auto size = static_cast<std::uint32_t>(out.size() - 16);
  out.replace(12, 4, reinterpret_cast<const char*>(&size), 4);
  pad();
  return out;
}

bool serves(const BusThread& bus) {
  BusClient client(bus);
  return nlohmann::json::parse(client.text("Status"))["pid"] == 4242;
}

ServerLimits impatient() {
  ServerLimits limits;
  limits.authenticate_within_us = 100'000;
  return limits;
}

TEST(Hostile, RandomBytesEndTheirConnectionOnly) {
  BusThread bus(impatient());
  BusClient steady(bus);
  ASSERT_NE(steady.text("Status"), "");
  std::mt19937 random(1);  // the same bytes each time
  for (int i = 0; i < 200; ++i) {
    std::string bytes(1 + random() % 3000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (i % 2 == 0) bytes[0] = '\0';  // as an authentication begins
    const Fd fd = bus.raw();
    ASSERT_TRUE(fd.valid());
    send_bytes(fd, bytes);
  }
  EXPECT_TRUE(serves(bus));
  EXPECT_NE(steady.text("Status"), "");
  EXPECT_TRUE(bus.eventually([&] { return bus.server().stats().connections == 1; }));
}

TEST(Hostile, GarbageAfterAGoodAuthenticationEndsTheConnection) {
  BusThread bus;
  std::mt19937 random(2);
  for (int i = 0; i < 50; ++i) {
    const Fd fd = bus.raw();
    send_bytes(fd, "\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n"s);
    std::string bytes(64 + random() % 512, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (bytes[0] == 'l' || bytes[0] == 'B') bytes[0] = 'x';
    send_bytes(fd, bytes);
    EXPECT_TRUE(closed(fd)) << "round " << i;
  }
  EXPECT_TRUE(serves(bus));
}

// Not hostile, only quick: everything in one write.
TEST(Hostile, ACallRightBehindTheAuthenticationIsAnswered) {
  BusThread bus;
  const Fd fd = bus.raw();
  send_bytes(fd, "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n"s + status_call(1) + status_call(2));
  std::string answer;
  char buffer[4096];
  const auto answers = [&] {
    std::size_t count = 0;
    for (std::size_t at = answer.find("managed_threads"); at != std::string::npos;
         at = answer.find("managed_threads", at + 1))
      ++count;
    return count;
  };
  while (answers() < 2) {
    pollfd waiting{fd.get(), POLLIN, 0};
    ASSERT_GT(::poll(&waiting, 1, 10'000), 0) << "no answer but: " << answer;
    const ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, 0);
    ASSERT_GT(got, 0);
    answer.append(buffer, static_cast<std::size_t>(got));
  }
}

TEST(Hostile, WhoDoesNotAuthenticateIsDroppedInTime) {
  BusThread bus(impatient());
  const Fd silent = bus.raw();
  const Fd slow = bus.raw();
  send_bytes(slow, "\0AUTH EXTER"s);
  EXPECT_TRUE(closed(silent));
  EXPECT_TRUE(closed(slow));
  EXPECT_EQ(bus.stats().unauthenticated_total, 2U);
  EXPECT_TRUE(serves(bus));
}

TEST(Hostile, AHalfMessageHoldsNobodyUp) {
  BusThread bus;
  const Fd fd = bus.raw();
  send_bytes(fd, "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n"s);
  // A header that announces a body of a megabyte, and then nothing.
  const unsigned char half[] = {'l', 1, 0, 1, 0, 0, 0x10, 0, 1, 0, 0, 0, 0x40, 0, 0, 0, 1};
  send_bytes(fd, std::string_view(reinterpret_cast<const char*>(half), sizeof half));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(serves(bus));
}

TEST(Hostile, IdleConnectionsLockNobodyOut) {
  ServerLimits limits;
  limits.connections = 16;
  BusThread bus(limits);
  BusClient follower(bus);
  ASSERT_EQ(follower.command("FollowEvents", "b", 1), "");
  std::vector<Fd> idle;
  for (int i = 0; i < 100; ++i) {
    idle.push_back(bus.raw());
    ASSERT_TRUE(idle.back().valid());
  }
  EXPECT_TRUE(serves(bus));
  const ServerStats stats = bus.stats();
  EXPECT_LE(stats.connections, 16U);
  EXPECT_GE(stats.evicted_total, 85U);
  // The follower has kept its place.
  bus.call([&] { bus.backend().sink(fakes::FakeBackend::donation_begun()); });
  EXPECT_NE(follower.next_event(), "");
}

TEST(Hostile, WhenAllPlacesAreFollowersTheNewcomerIsRefused) {
  ServerLimits limits;
  limits.connections = 2;
  BusThread bus(limits);
  BusClient first(bus);
  BusClient second(bus);
  ASSERT_EQ(first.command("FollowEvents", "b", 1), "");
  ASSERT_EQ(second.command("FollowEvents", "b", 1), "");
  const Fd third = bus.raw();
  EXPECT_TRUE(closed(third));
  EXPECT_EQ(bus.stats().refused_total, 1U);
  EXPECT_NE(first.text("Status"), "");
}

TEST(Hostile, WhoAsksAndNeverReadsIsDropped) {
  ServerLimits limits;
  limits.queued_messages = 20;
  BusThread bus(limits);
  const Fd fd = bus.raw();
  ASSERT_EQ(::fcntl(fd.get(), F_SETFL, O_NONBLOCK), 0);
  send_bytes(fd, "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n"s);
  bool ended = false;
  for (std::uint32_t serial = 1; serial < 100'000 && !ended; ++serial) {
    std::string message = status_call(serial);
    while (!message.empty()) {
      const ssize_t sent = ::send(fd.get(), message.data(), message.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        message.erase(0, static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN) {
        pollfd waiting{fd.get(), POLLOUT, 0};
        ASSERT_GT(::poll(&waiting, 1, 10'000), 0) << "the server neither reads nor drops";
        ended = (waiting.revents & POLLHUP) != 0;
        if (ended) break;
      } else {
        ended = true;
        break;
      }
    }
  }
  EXPECT_TRUE(ended);
  EXPECT_TRUE(serves(bus));
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// They ride on a call that takes none.
TEST(Hostile, DescriptorsThatNobodyTakesAreClosed) {
  BusThread bus;
  const Fd fd = bus.raw();
  send_bytes(fd, "\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n"s);
  ASSERT_TRUE(serves(bus));
  const std::size_t before = open_descriptors();
  std::array<int, 100> many{};
  many.fill(fd.get());
  for (std::uint32_t serial = 1; serial <= 20; ++serial) {
    const std::string call = status_call(serial, many.size());
    if (fakes::send_descriptors(fd.get(), std::as_bytes(std::span(call)), many) < 0) break;  // dropped: as well
  }
  EXPECT_TRUE(serves(bus));
  EXPECT_TRUE(bus.eventually([&] { return open_descriptors() <= before + 2; }))
      << open_descriptors() << " of " << before;
}

// With no descriptor left the listening socket stays readable: who would look at it all the time, would do nothing
// else.
TEST(Hostile, WithoutADescriptorToAcceptWithItWaits) {
  BusThread bus;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  Fd waiting(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const rlimit few{.rlim_cur = static_cast<rlim_t>(waiting.get()) + 1, .rlim_max = before.rlim_max};
  std::vector<Fd> gaps;  // below it
  for (Fd one(::dup(waiting.get())); one && one.get() < waiting.get(); one.reset(::dup(waiting.get())))
    gaps.push_back(std::move(one));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  bus.path().copy(address.sun_path, sizeof address.sun_path - 1);
  const std::uint64_t turns = bus.turns();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  // Nothing but plain calls in between: a sanitizer needs descriptors, too.
  const int connected = ::connect(waiting.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  (void)::poll(nullptr, 0, 200);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(connected, 0);
  EXPECT_LT(bus.turns() - turns, 100U) << "of the event loop";
  EXPECT_TRUE(serves(bus));
}

// In each turn of the event loop so many newcomers are let in, and the others have theirs.
TEST(Hostile, AFloodIsTakenInPortions) {
  BusThread bus;
  struct Turns {
    bus::Server& server;
    std::uint64_t seen = 0, most = 0, count = 0;
  } turns{bus.server()};
  const auto after_a_turn = [](sd_event_source*, void* data) {
    auto& t = *static_cast<Turns*>(data);
    const std::uint64_t now = t.server.stats().accepted_total;
    t.most = std::max(t.most, now - t.seen);
    t.count += now != t.seen ? 1 : 0;
    t.seen = now;
    return 0;
  };
  sd_event_source* source = nullptr;
  std::vector<Fd> flood;
  bus.call([&] {  // nobody is let in meanwhile
    ASSERT_GE(sd_event_add_post(bus.loop(), &source, after_a_turn, &turns), 0);
    for (int i = 0; i < 300; ++i) flood.push_back(bus.raw());
  });
  EXPECT_TRUE(bus.eventually([&] { return bus.server().stats().accepted_total >= 300; }));
  bus.call([&] { sd_event_source_disable_unref(source); });
  EXPECT_LE(turns.most, 64U);
  EXPECT_GE(turns.count, 5U);
}

// As another user: a child that gives up root. The socket's mode already keeps it out, so the test opens that.
TEST(Hostile, OnlyRootAndTheOwnerMayConnect) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  BusThread bus;
  ASSERT_EQ(::chmod(bus.directory().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(bus.path().c_str(), 0666), 0);
  const auto as_user = [&](uid_t uid) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setuid(uid) < 0) ::_exit(9);
      const Fd fd = bus.raw();
      if (!fd) ::_exit(8);
      send_bytes(fd, "\0AUTH EXTERNAL\r\nDATA\r\n"s);
      char byte = 0;
      ::_exit(::recv(fd.get(), &byte, 1, 0) == 1 ? 0 : 1);  // an answer, or the end
    }
    int state = 0;
    ::waitpid(child, &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  };
  EXPECT_EQ(as_user(65534), 1);
  EXPECT_EQ(bus.stats().refused_total, 1U);
  EXPECT_EQ(as_user(0), 0);
  // chown gives the socket to somebody else.
  ASSERT_EQ(::chown(bus.path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(as_user(65534), 0);
  EXPECT_TRUE(serves(bus));
}

// A user who follows at all places keeps others of his own out, but not root.
TEST(Hostile, FollowersLeaveAPlaceToRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ServerLimits limits;
  limits.connections = 2;
  BusThread bus(limits);
  ASSERT_EQ(::chmod(bus.directory().c_str(), 0755), 0);
  ASSERT_EQ(::chown(bus.path().c_str(), 65534, 65534), 0);
  int told[2] = {-1, -1};
  ASSERT_EQ(::pipe(told), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) < 0) ::_exit(9);
    BusClient first(bus);
    BusClient second(bus);
    for (BusClient* one : {&first, &second}) (void)one->command("FollowEvents", "b", 1);
    [[maybe_unused]] const ssize_t written = ::write(told[1], "f", 1);
    for (;;) (void)bus.raw();  // and goes on trying
  }
  char byte = 0;
  EXPECT_EQ(::read(told[0], &byte, 1), 1);
  BusClient root(bus);
  for (int i = 0; i < 200; ++i) EXPECT_NE(root.text("Status"), "") << i;
  EXPECT_EQ(bus.stats().evicted_total, 1U);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const int fd : told) ::close(fd);
}

}  // namespace
}  // namespace swapd::bus
