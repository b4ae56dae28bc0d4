// The guard: a tiny process that keeps the supervised programs alive when swapd is not there (docs/design.md, Guard).
//
// If the last holder of a listener dies, the trapped calls of its programs give ENOSYS. So the guard holds a duplicate
// of each from before its program runs. While swapd lives it only waits: for descriptors, for hang-ups, and for swapd's
// end. It asks for no POLLIN, because then each notification would wake it (measured: 6.5 µs a call become 1 ms); an
// epoll set in which the listeners stand with no event but the hang-up is not woken by them at all. When swapd has
// ended, however it did, the guard answers CONTINUE to everything until the last program has ended, and ends itself.
//
// A call that swapd had received is received by nobody else. Its id stands in memory that both share, or, where swapd
// ended before it could write it there, is one of the next few: ids are given in sequence. Only of a listener's very
// first call nothing is known, until another comes.
//
// The next swapd with the same state directory finds a guard that has been left alone at STATE_DIR/guard.PID, takes the
// listeners over (guard_takeover.h), and that guard ends.
//
// It is a small program of its own, swapd-guard: libc, no threads, a megabyte of memory, locked. If it is killed, swapd
// starts another (look_after()) and hands it all that the first one held. Only where both are killed before that, some
// milliseconds, is anything lost, and where a service manager keeps descriptors for swapd (fd_store.h), nothing. One
// that lives is never ended, however slow it is: it is all that the programs have.
//
// As a service of systemd it is a unit of its own, started through a socket: no stop of swapd's unit and no limit of
// its group reaches it, and what it may do is said apart.
//
// Where nobody else does it (a service manager, whoever started swapd in the foreground), it also starts swapd again.
//
// A swapd that lives and does not answer (stopped, hung) shows as a listener on which something waits while its slot
// does not change. The guard looks every quarter of `stale`, answers there too once that has lasted `stale`, and stops
// as soon as the slot changes again.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"
#include "guard/helper_program.h"
#include "observe/seccomp/receiver.h"

namespace swapd::daemon {

// What passes between swapd and the guard; the listener rides on a `hold` or a `give` as SCM_RIGHTS. A guard answers
// each `hold`. One that is alone answers each `take` of the next swapd with a `give`, or with `end` after the last; on
// `done` it lets that listener go, and ends itself with the last. `bye`: swapd is about to end, and means to. `done` to
// swapd-attach, or to the guard that it has become: somebody receives.
struct GuardMessage {
  static constexpr std::uint8_t current_version = 2;
  enum class Kind : std::uint8_t { hold = 1, answer = 2, take = 3, give = 4, end = 5, done = 6, bye = 7 };
  std::uint8_t version = current_version;
  Kind kind = Kind::hold;
  std::uint16_t slot = 0;      // of a hold: the listener's
  std::uint32_t sequence = 0;  // of a take and a done: which one, from 0
  std::int32_t error = 0;      // an errno, in answers
  std::int32_t pid = 0;        // of a hold and a give: whose launch made the listener
  std::uint64_t last_id = 0;   // of a give: the last one answered
};

// To a guard that is a unit of its own (systemd/swapd-guard@.service.in), what a child has as arguments and at fixed
// descriptors. It is sent twice: first swapd's pidfd rides on it, then the memory. The answer carries the guard's
// pidfd.
struct GuardStart {
  std::uint8_t version = GuardMessage::current_version;
  std::int64_t stale = 0;              // ns
  std::array<char, 1024> state_dir{};  // ended by a 0
};

inline constexpr std::size_t max_listeners = swapd::max_listeners;
inline constexpr Duration default_stale = std::chrono::milliseconds(200);

struct GuardOptions {
  std::string program;  // swapd-guard; find_guard()
  Duration stale = default_stale;
  std::string state_dir;  // absolute, where it is found once it is alone; empty: it is not
  // What it starts where swapd ends without meaning to: directory, program, argv. Empty: nothing.
  std::vector<std::string> respawn;
  unsigned restart_count = 0;  // how often that has been done, one soon after the other
  std::string socket;          // where systemd starts one, with a unit of its own; empty: it is a child
};
// Beside our own program, or in ../libexec/swapd.
[[nodiscard]] std::string find_guard();

class Guard {
 public:
  // ENOENT: there is no such program.
  [[nodiscard]] static Result<Guard> start(GuardOptions options);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  Guard(Guard&&) = default;
  Guard& operator=(Guard&&) = default;
  ~Guard() = default;  // the guard goes on while it holds anything

  // When this returns well, the guard has its duplicate, and the slot is the listener's until let_go(). EMFILE: its
  // table is full (RLIMIT_NOFILE, max_listeners). ETIMEDOUT: it does not answer. One that has ended is replaced. Any
  // thread.
  [[nodiscard]] Result<ListenerSlot*> hold(int listener, pid_t launch = 0);
  // Its programs have ended, and its receiver too.
  void let_go(const ListenerSlot* slot);
  // Where the guard has ended, another one; and what the present one does not hold is handed to it. An error: something
  // is left to be done, call again. Any thread.
  [[nodiscard]] Status look_after();
  // Polls readable once the present guard has ended. A descriptor of the caller's own.
  [[nodiscard]] Result<Fd> watch() const;
  [[nodiscard]] pid_t pid() const;
  // Why the present one is a child although `socket` was given; empty: it is not.
  [[nodiscard]] std::string note() const;
  [[nodiscard]] int memory() const { return program_.memory.get(); }  // a GuardMemory
  // Where delayed calls are written down for it, and the number of a listener in there.
  [[nodiscard]] std::span<DelayedCall> delayed() const { return memory_->delayed; }
  [[nodiscard]] std::span<FrozenGroup> frozen() const { return std::span(memory_->frozen).first<max_frozen>(); }
  [[nodiscard]] std::span<FrozenGroup> away() const { return std::span(memory_->frozen).last<max_away>(); }
  [[nodiscard]] std::uint32_t number_of(const ListenerSlot* slot) const {
    return static_cast<std::uint32_t>(slot - memory_->slots.data());
  }
  // swapd ends on purpose: it is not to be started again.
  void say_goodbye() const;

 private:
  struct Unmap {
    void operator()(GuardMemory* memory) const;
  };
  using Memory = std::unique_ptr<GuardMemory, Unmap>;
  struct Process {
    pid_t pid = -1;
    Fd pidfd, socket;
    std::string note;
  };
  struct Kept {
    Fd listener;
    pid_t launch = 0;
    bool held = false;  // by the present guard
  };
  struct Program {
    GuardOptions options;
    OwnProgram file;
    Fd memory;  // a GuardMemory
  };

  Guard(Program program, Process process, Memory memory);
  [[nodiscard]] static Result<Process> spawn(const Program& program);
  [[nodiscard]] static Result<Process> spawn_child(const Program& program, int self);
  [[nodiscard]] static Result<Process> spawn_unit(const Program& program, int self);
  [[nodiscard]] Status hand_over(std::uint16_t slot, Kept& kept);
  [[nodiscard]] Status hand_over_the_rest();
  [[nodiscard]] Status replace();

  Program program_;
  Process process_;
  Memory memory_;
  std::unique_ptr<std::mutex> mutex_;
  std::uint32_t sequence_ = 0;
  std::vector<std::uint16_t> free_;               // slots
  std::unordered_map<std::uint16_t, Kept> kept_;  // by slot: what the guard holds, for the next one
};

}  // namespace swapd::daemon
