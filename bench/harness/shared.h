// What the processes of one run share: a memfd, mapped by each, and a control channel (a socket pair) from each to the
// harness.
//
// The shared memory carries results and, for mechanisms that move no data (semaphores, signals, locks), the answer
// itself. Nobody waits on it, so it adds no dependency that swapd would have to see.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/sched_attr.h"

namespace swapd::bench {

inline constexpr std::size_t answer_size = 4096;
inline constexpr std::uint32_t max_samples = 200'000;

// What the mechanisms of pthreads wait on. Made by those alone; all-zero memory else.
struct SyncObjects {
  std::array<pthread_mutex_t, 2> mutexes{};
  std::array<pthread_cond_t, 2> conditions{};
  bool full = false;  // guarded by the first mutex
};

// latency: when the client began to wait, and when it had its answer (CLOCK_MONOTONIC).
struct WaitWindow {
  std::int64_t begun_ns = 0, ended_ns = 0;
};
inline constexpr std::uint32_t max_windows = 10'000;

struct Shared {
  std::atomic<pid_t> client_pid{0};
  std::atomic<pid_t> server_pid{0};
  std::atomic<std::uint32_t> generation{0};                // multi-server: the request that is being worked on
  std::atomic<std::uint32_t> answered{0};                  // multi-server: the last request that has its answer
  std::atomic<std::uint32_t> waiting{0};                   // how often the client has begun to wait
  std::array<std::array<char, answer_size>, 2> answers{};  // one for each of two locks; else the first
  SyncObjects sync;
  std::atomic<std::uint32_t> offered{0}, asked{0};  // latency: the round that the provider, the client has come to
  std::atomic<std::uint32_t> lent{0};  // latency: how often the provider found other attributes than its own
  SchedAttr provider_own;              // latency: its attributes without a donation
  std::array<WaitWindow, max_windows> windows{};
  std::atomic<std::uint32_t> samples{0};
  double first_ms = 0;  // the iteration before the samples, in which the servers start too; 0: there was none
  std::array<double, max_samples> sample_ms{};
};

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();
  [[nodiscard]] static Result<SharedMemory> create();
  [[nodiscard]] static Result<SharedMemory> map(int fd);
  [[nodiscard]] int fd() const { return fd_.get(); }
  Shared* operator->() const { return memory_; }
  Shared& operator*() const { return *memory_; }

 private:
  Fd fd_;
  Shared* memory_ = nullptr;
};

// One line each way. A role says "ready", waits for "go", and reports failures; the harness closes its end to stop it.
struct ChannelPair {
  Fd harness;
  Fd role;
};
[[nodiscard]] Result<ChannelPair> make_channel();
[[nodiscard]] Status send_line(int channel, const std::string& line);
// The next line; ECONNRESET when the other side is gone, ETIMEDOUT after timeout_ms (-1: none).
[[nodiscard]] Result<std::string> receive_line(int channel, int timeout_ms = -1);

// One descriptor over a unix socket. Received: no descriptor where there is none; `flags` are recvmsg(2)'s.
[[nodiscard]] Status send_fd(int channel, int fd);
[[nodiscard]] Fd receive_fd(int channel, int flags = 0);

}  // namespace swapd::bench
