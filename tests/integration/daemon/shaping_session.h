// A swapd whose classes have limits, programs that move bytes under them, and peers for their connections.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "session.h"
#include "sys/procfs/block_devices.h"

namespace swapd::test {

inline constexpr long long mib = 1 << 20, kib = 1 << 10;

// What a mover says at its end.
struct Moved {
  long long bytes = -1;
  double seconds = 0;
  long calls = 0, errors = -1;
  double begun = 0;  // CLOCK_MONOTONIC
};

// The other side of a connection: takes what comes, or sends without end.
class Peer {
 public:
  enum class Does { takes, sends };
  Peer(int type, Does does)
      : socket_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)), thread_([this, type, does] { run(type, does); }) {}
  ~Peer() {
    stop_ = true;
    ::shutdown(socket_.get(), SHUT_RDWR);
    if (const int other = connection_.load(); other >= 0) ::shutdown(other, SHUT_RDWR);
    thread_.join();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  [[nodiscard]] std::string port() {
    while (port_ == 0) std::this_thread::yield();
    return std::to_string(port_);
  }
  [[nodiscard]] long long taken() const { return taken_; }

 private:
  void run(int type, Does does) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    (void)::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size);
    if (type == SOCK_STREAM) ::listen(socket_.get(), 4);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    const timeval look{.tv_sec = 0, .tv_usec = 50'000};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
    port_ = ntohs(address.sin_port);
    std::vector<char> bytes(64 << 10);
    if (type == SOCK_DGRAM) {
      while (!stop_) (void)!::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      return;
    }
    while (!stop_) {
      const Fd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection) continue;
      connection_ = connection.get();
      while (!stop_) {
        const ssize_t n = does == Does::takes ? ::recv(connection.get(), bytes.data(), bytes.size(), 0)
                                              : ::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n == 0 || (n < 0 && errno != EAGAIN)) break;  // EAGAIN: a look at stop_
        if (n > 0 && does == Does::takes) taken_ += n;
      }
      connection_ = -1;
    }
  }
  Fd socket_;
  std::atomic<int> port_{0}, connection_{-1};
  std::atomic<bool> stop_{false};
  std::atomic<long long> taken_{0};
  std::thread thread_;
};

class ShapingSession : public ::testing::TestWithParam<const char*> {
 protected:
  // Only here does a skip end the test. Files that are shaped are on a disk, which /tmp often is not.
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "root is needed";
    if (GetParam() == std::string_view("bpf") && !std::filesystem::exists("/sys/kernel/btf/vmlinux"))
      GTEST_SKIP() << "no BTF of the kernel (CONFIG_DEBUG_INFO_BTF)";
    const sys::BlockDevices disks;
    if (disks.find(std::filesystem::temp_directory_path())) return;
    if (!disks.find("/var/tmp")) GTEST_SKIP() << "neither $TMPDIR nor /var/tmp is on a disk";
    ::setenv("TMPDIR", "/var/tmp", 1);
  }
  void begin(const std::string& config = "", std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--observe", GetParam()});
    session.emplace(options, config);
    ASSERT_EQ(session->failure(), "");
    std::ofstream out(session->path("data"));
    const std::string block(64 << 10, 'x');
    for (int i = 0; i < 128; ++i) out << block;  // 8 MiB
  }
  void must(const std::vector<std::string>& arguments) {
    const Output done = session->ctl(arguments);
    ASSERT_EQ(done.status, 0) << done.err;
  }
  [[nodiscard]] std::string mover() const { return std::filesystem::path(PAIR_PROGRAM).parent_path() / "mover"; }
  // Starts one in the class, its answer in a file.
  pid_t start(const std::string& class_name, const std::string& name, const std::vector<std::string>& words) {
    return session->start({"--class", class_name}, shell(name, words));
  }
  std::vector<std::string> shell(const std::string& name, const std::vector<std::string>& words) {
    std::string line = "exec " + mover();
    for (const std::string& word : words) line += " " + word;
    return {"/bin/sh", "-c", line + " >" + session->path(name)};
  }
  [[nodiscard]] Moved answer(const std::string& name) const {
    std::ifstream in(session->path(name));
    Moved out;
    in >> out.bytes >> out.seconds >> out.calls >> out.errors >> out.begun;
    return out;
  }
  Moved moved(const std::string& class_name, const std::vector<std::string>& words) {
    const pid_t pid = start(class_name, "answer", words);
    EXPECT_EQ(session->wait(pid), 0) << words.front();
    return answer("answer");
  }
  [[nodiscard]] nlohmann::json shown(const std::string& class_name) const {
    return session->json({"class", "show", class_name})["classes"][0];
  }
  [[nodiscard]] bool delayed(pid_t pid) const {
    const auto all = session->json({"ps"});
    for (const auto& thread : all["threads"])
      if (thread["tid"] == pid) return thread["state"] == "delayed";
    return false;
  }
  // One that has taken a minute's tokens with its first call and waits for its second.
  pid_t start_delayed(const std::string& count = "1000x") {
    must({"class", "create", "slow", "--both", "64KiB", "--burst", "64KiB"});
    const pid_t pid = start("slow", "slow", {"read", "4194304", count, session->path("data")});
    EXPECT_TRUE(eventually([&] { return delayed(pid); })) << session->ctl({"ps"}).out;
    return pid;
  }
  std::optional<Session> session;
};

// Never more than the burst, what the rate brings, and a block; and not much less.
inline void expect_limited(const Moved& m, long long rate, long long burst, long long block, const std::string& what) {
  EXPECT_EQ(m.errors, 0) << what;
  const double allowed = static_cast<double>(rate) * m.seconds;
  EXPECT_LE(static_cast<double>(m.bytes), allowed + static_cast<double>(burst + block))
      << what << ", " << m.seconds << " s";
  EXPECT_GE(static_cast<double>(m.bytes), allowed / 2) << what << ", " << m.seconds << " s";
}

}  // namespace swapd::test
