// One call that moves a whole file waits for its share first, and nobody of its class waits for it (reports of cp,
// sendfile, io_submit and du under a limit).
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>

#include "shaping_session.h"

namespace swapd::test {
namespace {

using std::chrono::steady_clock;

class LargeCalls : public ShapingSession {
 protected:
  [[nodiscard]] static long long size_of(const std::string& path) {
    struct stat st {};
    return ::stat(path.c_str(), &st) == 0 ? st.st_size : 0;
  }
  // How far the file was ahead of the limit at most, in seconds, while the process ran.
  double ahead_of(long long rate, const std::string& file, pid_t pid) {
    const auto begin = steady_clock::now();
    double worst = 0;
    eventually([&] {
      const double passed = std::chrono::duration<double>(steady_clock::now() - begin).count();
      worst = std::max(worst, static_cast<double>(size_of(file)) / static_cast<double>(rate) - passed);
      return size_of(file) >= 8 * mib || ::kill(pid, 0) != 0;
    });
    return worst;
  }
};

// 8 MiB in one call, at 8 MiB a second.
TEST_P(LargeCalls, MoveNothingBeforeTheirShareIsThere) {
  begin();
  must({"class", "create", "slow", "--write", "8MiB"});
  for (const char* way : {"copy", "sendfile", "write"}) {
    const std::string to = session->path(std::string("to-") + way);
    std::vector<std::string> words{way, "8388608", "1x"};
    if (way != std::string("write")) words.push_back(session->path("data"));
    words.push_back(to);
    const pid_t pid = start("slow", "answer", words);
    EXPECT_LT(ahead_of(8 * mib, to, pid), 0.5) << way;
    EXPECT_EQ(session->wait(pid), 0) << way;
    const Moved m = answer("answer");
    EXPECT_EQ(m.bytes, 8 * mib) << way;
    EXPECT_GE(m.seconds, 0.8) << way;
    EXPECT_LE(m.seconds, 3.0) << way;
  }
}

// A file sent with one call, and what its receiver gets, at 8 MiB a second.
TEST_P(LargeCalls, SendfileToASocketWaitsForTheLinksLimit) {
  begin();
  must({"class", "create", "slow", "--network", "--write", "8MiB"});
  Peer peer(SOCK_STREAM, Peer::Does::takes);
  const pid_t pid = start("slow", "answer", {"sendfile-tcp", "8388608", "1x", peer.port(), session->path("data")});
  const auto begun = steady_clock::now();
  double ahead = 0;
  EXPECT_TRUE(eventually([&] {
    const double passed = std::chrono::duration<double>(steady_clock::now() - begun).count();
    ahead = std::max(ahead, static_cast<double>(peer.taken()) / static_cast<double>(8 * mib) - passed);
    return peer.taken() >= 8 * mib;
  })) << peer.taken();
  EXPECT_LT(ahead, 0.5);
  EXPECT_EQ(session->wait(pid), 0);
  EXPECT_GE(answer("answer").seconds, 0.8);
}

// While it waits and after it, others of its class go on; `why` says what it waits for.
TEST_P(LargeCalls, HoldUpNobody) {
  begin();
  must({"class", "create", "slow", "--both", "1MiB"});
  const pid_t large = start("slow", "large", {"read", "8388608", "1x", session->path("data")});
  ASSERT_TRUE(eventually([&] { return delayed(large); })) << session->ctl({"ps"}).out;
  EXPECT_EQ(session->json({"why", std::to_string(large)})["threads"][0]["share_bytes"], 8 * mib);
  EXPECT_THAT(session->ctl({"why", std::to_string(large)}).out, ::testing::HasSubstr("its share of 8192.0 KiB"));
  for (int i = 0; i < 3; ++i) {
    const Moved small = moved("slow", {"read", "4096", "2x", session->path("data")});
    EXPECT_LT(small.seconds, 1.0) << i;
  }
  EXPECT_TRUE(delayed(large));
  ::kill(large, SIGKILL);
  session->wait(large);
  const Moved after = moved("slow", {"read", "4096", "2x", session->path("data")});
  EXPECT_LT(after.seconds, 1.0) << "what was not moved nobody owes";
}

// A file that is read from near its end moves what is left of it.
TEST_P(LargeCalls, AskForMoreThanTheyCanMove) {
  begin();
  must({"class", "create", "slow", "--read", "4MiB"});
  const Moved m = moved("slow", {"pread", "8380416", "2x", session->path("data")});  // 8 KiB less than it has
  EXPECT_EQ(m.bytes, 8 * mib);
  EXPECT_GE(m.seconds, 1.7);
  EXPECT_LE(m.seconds, 3.3) << "the second call has 8 KiB to move";
}

TEST_P(LargeCalls, SubmissionsOfLinuxAioKeepToTheLimit) {
  begin();
  must({"class", "create", "slow", "--both", "4MiB", "--burst", "64KiB"});
  for (const char* way : {"aio-read", "aio-write"}) {
    const std::string file = session->path(way == std::string("aio-read") ? "data" : "to");
    expect_limited(moved("slow", {way, "65536", "0.5", file, "direct"}), 4 * mib, 64 * kib, 256 * kib, way);
    expect_limited(moved("slow", {way, "65536", "0.5", file}), 4 * mib, 64 * kib, 256 * kib, way);
  }
}

TEST_P(LargeCalls, LimitsThatNobodyWantsAreRefused) {
  begin();
  const Output small = session->ctl({"class", "create", "tiny", "--write", "10"});
  EXPECT_EQ(small.status, 2);
  EXPECT_THAT(small.err, ::testing::HasSubstr("10 means 10 bytes a second; write 10MiB"));
  const Output nowhere = session->ctl({"class", "create", "tiny", "--device", "/nonexistent", "--write", "10MiB"});
  EXPECT_NE(nowhere.status, 0);
  EXPECT_THAT(nowhere.err, ::testing::HasSubstr("No such file or directory"));
  must({"class", "create", "slow", "--write", "10MiB"});
  EXPECT_THAT(session->ctl({"class", "show", "slow"}).out, ::testing::StartsWith("Of donations it says nothing"));
}

INSTANTIATE_TEST_SUITE_P(Observers, LargeCalls, ::testing::Values("bpf", "seccomp"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace swapd::test
