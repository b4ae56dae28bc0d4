// The guard: a tiny process that keeps the supervised programs alive when swapd is not there (DESIGN.md section 8.7).
//
// If the last holder of a listener dies, the trapped calls of its programs give ENOSYS. So the guard holds a duplicate
// of each from before its program runs. While swapd lives it only waits: for descriptors, for hang-ups, and for swapd's
// end. It asks for no POLLIN, because then each notification would wake it (measured: 6.5 µs a call become 1 ms); an
// epoll set in which the listeners stand with no event but the hang-up is not woken by them at all. When swapd has
// ended, however it did, the guard answers CONTINUE to everything until the last program has ended, and ends itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::daemon {

// What passes between swapd and the guard; the listener rides on a `hold` as SCM_RIGHTS. A guard answers each.
struct GuardMessage {
  static constexpr std::uint8_t current_version = 1;
  enum class Kind : std::uint8_t { hold = 1, answer = 2 };
  std::uint8_t version = current_version;
  Kind kind = Kind::hold;
  std::uint16_t unused = 0;
  std::uint32_t sequence = 0;
  std::int32_t error = 0;  // an errno, in answers
};

class Guard {
 public:
  // Forks. Before any thread is started, best of all first thing in main(): the guard keeps what memory there is.
  [[nodiscard]] static Result<Guard> start();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  Guard(Guard&&) = default;
  Guard& operator=(Guard&&) = default;
  ~Guard() = default;  // the guard goes on while it holds anything

  // When this returns well, the guard has its duplicate. EMFILE: its table is full (RLIMIT_NOFILE). EPIPE: the guard is
  // dead. Any thread.
  [[nodiscard]] Status hold(int listener);
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  Guard(pid_t pid, Fd socket) : pid_(pid), socket_(std::move(socket)), mutex_(std::make_unique<std::mutex>()) {}
  pid_t pid_;
  Fd socket_;
  std::unique_ptr<std::mutex> mutex_;
  std::uint32_t sequence_ = 0;
};

}  // namespace swapd::daemon
