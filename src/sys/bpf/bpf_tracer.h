// Blocks and wakeups with their wakers, from the kernel's scheduler through BPF (docs/bpf.md).
//
// Threads are managed or not. A managed one has a slot that the kernel writes at each block and wake; reading it is a
// look at shared memory. Its children and their threads are managed from before their first instruction, and the slot
// is freed when it ends. Threads that are watched besides give a record for each block and wake; forks, execs and exits
// of managed threads give one in any case.
//
// Tids, here and in arguments, are those of our pid namespace; a thread outside it has no tid here. Times are
// CLOCK_MONOTONIC. One user: the caller serialises, also manage() and read().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/missing_piece.h"
#include "base/result.h"
#include "base/time.h"

namespace swapd::sys {

struct BpfOptions {
  // Rounded up to a power of two, 256 bytes each. Keep a third of them free: a child that finds its 32 places taken is
  // not managed.
  std::uint32_t slots = 16384;
  std::size_t ring_bytes = std::size_t{1} << 20;     // rounded up to a power of two; a record takes 96
  std::size_t wake_at_bytes = std::size_t{1} << 18;  // the reader is woken when so much waits, urgent or not
  std::string btf = "/sys/kernel/btf/vmlinux";
  std::string kallsyms = "/proc/kallsyms";
  bool old_helpers = false;  // for tests: as if the kernel were older than 6.2
  bool follow = true;        // follow() from the start
};

// The thread that ended a wait, and the call that it was in. tid 0: no thread can be named.
struct Waker {
  pid_t tid = 0;
  pid_t tgid = 0;
  std::int32_t call = -1;               // -1: in none (a page fault, a kernel thread)
  std::array<std::uint64_t, 2> args{};  // the first two of the call
  bool compat = false;                  // the call is of the 32-bit table
  bool kernel_thread = false;           // or a worker of io_uring
  bool interrupt = false;               // a timer, a disk, a packet from outside: no thread
  // Woken by a soft interrupt that this thread's call ran: what it sent over loopback, or rarely a packet from outside.
  // Believe it where the call fits the wait.
  bool own_softirq = false;
};

struct ThreadSlot {
  enum class Phase : std::uint8_t {
    unknown,  // managed by manage(), and nothing seen since: procfs knows
    running,  // has had a CPU since its last wait (it may be preempted now)
    blocked,  // while it was not watched: or woken, procfs knows
    woken,    // and has had no CPU since
  } phase = Phase::unknown;
  // The last wait, also when it is over.
  std::int32_t call = -1;  // -1: in none
  std::array<std::uint64_t, 6> args{};
  bool compat = false;      // call and arguments are of the 32-bit table
  std::uint16_t sleep = 0;  // the kernel's bits: 1 interruptible, 2 uninterruptible, 4 stopped, 8 traced
  bool doubtful = false;    // a wake may have been under way already: procfs knows
  Time blocked_at;  // exact where a record came of it; else as of the tell_time() before, and later than its last wait
  Duration cpu{};   // CPU time in all, when it last left its CPU
  // The last wake, which may be older than the last wait.
  Waker waker;
  Time woken_at;            // of the last wake that gave a record
  std::uint32_t order = 0;  // the how-many-eth wake of that waker it was; 0: the waker is not managed
  bool watched = false;
  bool silent = false;   // the present wait has given no record, nor will its end
  pid_t awaited_by = 0;  // waits for this one in silence, see expect()
};

// A slot's words that change most, each read at once.
struct SlotGlance {
  std::uint32_t waits = 0;  // how many waits of those that come often have begun
  bool silent = false;      // it waits, and no record has told of it
  bool starved = false;     // it is watched, wants a CPU and has none
  int prio = 0;             // the kernel's priority as its last wait began: lower is more important
  pid_t waker = 0;          // the thread that has woken it last; 0: none
  std::uint32_t wakes = 0;  // how many it has made
};

// The thread that has a CPU.
struct RunningThread {
  pid_t tid = 0;  // 0: one that is not managed, or none
  int prio = 0;   // the kernel's priority; 0: it idles, or nothing is known
};

struct BpfRecord {
  enum class What : std::uint8_t { blocked, woken, fork, exec, exit, left } what = What::blocked;
  Time time;       // of blocked, woken and left
  pid_t tid = 0;   // fork: the child
  pid_t tgid = 0;  // fork, exec, exit
  // blocked
  std::int32_t call = -1;
  std::array<std::uint64_t, 6> args{};
  bool compat = false;
  std::uint16_t sleep = 0;
  bool doubtful = false;
  bool inverted = false;  // one of those that come often, told because it begins as an inversion
  Duration cpu{};         // blocked, exit: CPU time in all
  // woken
  Waker waker;
  Time blocked_at;
  bool late = false;        // noticed only when the thread got a CPU; who woke it is right, when is not
  bool silent = false;      // of the wait that has ended there was no record; the slot has it
  std::uint32_t wakes = 0;  // that the thread has made before; ThreadSlot::order goes on from there
  // left: it has lost its CPU, or blocked, while this one waited for it in silence
  pid_t waiter = 0;
  // fork
  pid_t parent = 0;  // the thread that forked
  pid_t parent_tgid = 0;
  std::uint64_t start_time = 0;  // as in ThreadId
  bool without_slot = false;     // fork, exec: it is not managed, because no slot was free
  // exec: the tid before, another one where the thread was not its process's first. The slot has moved. 0: another one,
  // in a pid namespace of our own, of any process there: manage the thread anew where it is yours, and let the former
  // go.
  pid_t former_tid = 0;
};

class BpfTracer {
 public:
  // Loads and attaches what the kernel takes; missing() names the rest. The error names in one line why nothing can be
  // had: BTF, a capability, a program without which nothing is seen (switches, wakes).
  [[nodiscard]] static Result<std::unique_ptr<BpfTracer>> open(const BpfOptions& options = {});
  BpfTracer(const BpfTracer&) = delete;
  BpfTracer& operator=(const BpfTracer&) = delete;
  ~BpfTracer();  // detaches; nothing is left in the kernel

  // Switches the following of context switches and wakeups on or off. While it is on, each of the machine's costs some
  // 80 ns, whichever thread makes it. While it is off, slots are `unknown`, and forks, execs and exits are told as
  // ever. Call it before watch(). EEXIST: an older kernel is still letting go what was followed before; ask again.
  [[nodiscard]] Status follow(bool on);
  [[nodiscard]] bool follows() const;

  // ESRCH: gone or ending. ENOSPC: no slot is free for it. A thread that it makes in the meantime is missed: take all
  // threads of a process in, and look again until there is no new one.
  [[nodiscard]] Status manage(pid_t tid);
  [[nodiscard]] Status unmanage(pid_t tid);  // ESRCH: it was not
  [[nodiscard]] bool manages(pid_t tid) const;

  // ESRCH: not managed. EAGAIN: it was being written all the time.
  [[nodiscard]] Result<ThreadSlot> slot(pid_t tid) const;
  // urgent: a record of this thread wakes the reader at once. Watch first and then read the slot: what happened before
  // is in the slot, what happens later in the ring (a block that falls in between may be in both). What was happening
  // just then may arrive in the slot some µs later: read it once more; and where it says blocked, procfs knows whether
  // it was woken since.
  [[nodiscard]] Status watch(pid_t tid, bool on, bool urgent);

  // The CPU time of a managed thread up to now; while it has a CPU as of the last tick, or exact where it is timed, has
  // left its CPU before and got one since. ESRCH: not managed.
  [[nodiscard]] Result<Duration> cpu_time(pid_t tid, Time now) const;
  [[nodiscard]] Status time_exactly(pid_t tid, bool on);

  // When this thread waits in that call with that first argument, `provider` usually ends it: as long as that one has a
  // CPU, or gets the one that becomes free, the wait is silent. It gives no record, nor does its end by that provider;
  // if the provider leaves its CPU first, its record `left` wakes the reader. provider 0: every wait is told. Of itself
  // a thread expects the process that it has made last, in wait4(2) and waitid(2), while that lives.
  [[nodiscard]] Status expect(pid_t tid, pid_t provider, std::int32_t call, std::uint64_t arg);
  // The end of its present wait is told. Read the slot after it.
  void report_wake(pid_t tid);
  enum class Patience : std::uint8_t {
    none,      // its waits are told, but those that expect() keeps silent
    watchful,  // waits that come often are silent, whichever thread ends them; `left` is told where the expected thread
               // loses its CPU meanwhile, and goes on wanting one, to a thread that matters less and is not watched
    resting,   // … nor that
  };
  // The thread is watched. ESRCH: not managed.
  [[nodiscard]] Status be_patient(pid_t tid, Patience patience);
  // A kind of wait: in a native call with this first argument, or with any.
  struct WaitKind {
    std::int32_t call = -1;
    std::optional<std::uint64_t> arg;
    bool operator==(const WaitKind&) const = default;
  };
  static constexpr std::size_t max_often = 2;
  // The waits that come often: these; more than max_often: all.
  [[nodiscard]] Status set_often(pid_t tid, std::span<const WaitKind> kinds);
  // Empty: not managed.
  [[nodiscard]] std::optional<SlotGlance> glance(pid_t tid) const;

  // One for each CPU, as of its last switch. Where this process has the CPU: the thread that it preempted, which may
  // have gone to another CPU since.
  [[nodiscard]] std::vector<RunningThread> running() const;

  // Polls readable (level-triggered, once woken) when an urgent record has come or wake_at_bytes have gathered. Records
  // that are not urgent wait for the next read(): read at your own pace.
  [[nodiscard]] int fd() const;
  std::size_t read(BpfRecord* out, std::size_t most);
  // Passes the present time on: a wait that gives no record is dated at the last such moment.
  void tell_time(Time now);
  // While on, no record wakes the reader. After `off` read before you wait; what was being written at that moment may
  // lie there until the next record.
  void nap(bool on);
  // Since open(): records that found the ring full, children that found no slot. Either asks for a scan.
  [[nodiscard]] std::uint64_t lost() const;
  [[nodiscard]] std::uint64_t without_slot() const;
  // False: the waker of a receiver of loopback traffic cannot be named (kernel.kptr_restrict hides what is needed).
  [[nodiscard]] bool names_softirq_senders() const;
  // Whether children are managed by their birth and records tell of forks, execs and exits. Else another source must
  // tell, and what has ended must be let go with unmanage().
  [[nodiscard]] bool tells_lives() const;
  // Pieces that the kernel refused.
  [[nodiscard]] const std::vector<MissingPiece>& missing() const;

 private:
  struct Impl;
  explicit BpfTracer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::sys
