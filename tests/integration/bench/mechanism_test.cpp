// Every mechanism between two real processes: the client gets fresh answers, and waits for one computation each time.
#include "mechanisms/mechanism.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>

#include "harness/process.h"

namespace swapd::bench {
namespace {

class MechanismTest : public testing::TestWithParam<std::string_view> {};

Peer peer_of(const End& end, Shared* shared) {
  Peer peer;
  for (const Fd& fd : end.fds) peer.fds.push_back(fd.get());
  peer.word = end.word;
  peer.shared = shared;
  return peer;
}

TEST_P(MechanismTest, EachAnswerIsANewComputation) {
  constexpr std::uint32_t rounds = 20;
  const auto dir = TempDir::create();
  ASSERT_TRUE(dir);
  auto memory = SharedMemory::create();
  ASSERT_TRUE(memory);
  Shared& shared = **memory;
  const auto mechanism = make_mechanism(GetParam());
  ASSERT_NE(mechanism, nullptr);
  Place place;
  place.dir = dir->path();
  place.shared = &shared;
  const auto created = mechanism->create(place);
  ASSERT_TRUE(created) << created.error().text();

  // The computation is to count itself; the client's n-th answer must not come before the n-th.
  const Computation compute = [&] { ++shared.generation; };
  std::vector<Child> children;
  const auto start = [&](auto body) {
    auto child = Child::fork(Spawn{}, body);
    ASSERT_TRUE(child);
    children.push_back(std::move(*child));
  };
  shared.client_pid = shared.server_pid = 0;
  start([&] {
    shared.client_pid = ::getpid();
    if (!mechanism->attach_client(peer_of(place.client, &shared))) return 1;
    while (mechanism->has_server() && shared.server_pid == 0) ::usleep(100);
    for (std::uint32_t i = 1; i <= rounds; ++i) {
      if (!mechanism->request(compute)) return 2;
      const auto answered = mechanism->await();
      if (!answered) return 3;
      if (shared.generation < i) return 4;
    }
    return 0;
  });
  if (mechanism->has_server()) {
    start([&] {
      while (shared.client_pid == 0) ::usleep(100);
      if (!mechanism->attach_server(peer_of(place.server, &shared))) return 1;
      shared.server_pid = ::getpid();
      while (mechanism->serve(compute)) {
      }
      return 2;
    });
  }
  const auto ended = children[0].wait(std::chrono::seconds(30));
  ASSERT_TRUE(ended) << ended.error().text();
  EXPECT_EQ(wait_text(*ended), "exit 0");
}

INSTANTIATE_TEST_SUITE_P(All, MechanismTest, testing::ValuesIn(mechanism_names()), [](const auto& tested) {
  std::string name(tested.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Mechanism, UnknownNamesAreNoMechanism) { EXPECT_EQ(make_mechanism("telepathy"), nullptr); }

}  // namespace
}  // namespace swapd::bench
