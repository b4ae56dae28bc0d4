// Decides what calls cost, which thread owes, and which stands still: all of shaped I/O. Pure, and without a lock: its
// owner has one (daemon/shaping/shared_ledger.h).
//
// A gate sees a call of a thread at its entry. It reads what the kernel has counted of the thread since its last call
// (CallerMoved), finds out what this call is about to move (WantedCall), and asks settle_and_reserve(), which
//   1. settles the last call with what it has really moved: too much is given back, more is a debt,
//   2. charges what the thread has moved without a call, as a debt of the thread,
//   3. lets the thread pay its debts as far as it can by now,
//   4. reserves the new call's places in the buckets of its class,
// and says until when the call is held. A favoured thread is not held: what it takes is a debt, too.
//
// A process of a class with mapped = "freeze" pays for pages of mapped files without a call (PagePayer).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "decide/shaping/caller.h"
#include "decide/shaping/class_table.h"
#include "decide/shaping/gate_entries.h"
#include "decide/shaping/held_threads.h"
#include "decide/shaping/shaping.h"

namespace swapd::decide {

// A process that pays at once for pages of mapped files. What looks at it keeps it, and changes it through the ledger.
struct PagePayer {
  pid_t tgid = 0;
  std::shared_ptr<Debts> debts = std::make_shared<Debts>();
  Reservation last_charge;
};

class Ledger {
 public:
  struct Options {
    Duration slice = std::chrono::milliseconds(100);  // of a delay: a held call is looked at so often
    bool dry_run = false;                             // counts, and holds no call
  };
  explicit Ledger(const Options& options) : options_(options), classes_(shaping_) {}

  [[nodiscard]] ClassTable& classes() { return classes_; }
  [[nodiscard]] HeldThreads& held() { return held_; }
  [[nodiscard]] GateEntries& entries() { return entries_; }

  // --- calls; a gate ---
  struct Verdict {
    bool waits = false;  // it is held, until `due` or a later time
    Time due{};
    bool by_turns = false;  // `due` will be put off, so that it is looked at though it is near
    bool spares = false;    // the next call may go on with this one: try join_last()
  };
  // want: null: the call is not to be held, nor charged.
  Verdict settle_and_reserve(Caller& caller, const ClassViewPtr& view, CallerMoved moved, const WantedCall* want,
                             Time now);
  // Lets a call like the last one go on, to be settled together with it: while the buckets are far from empty, it may
  // go on whatever that one has moved. False: it cannot, and nothing has changed.
  [[nodiscard]] bool join_last(Caller& caller, const WantedCall& want, Time now);
  enum class Settles : std::uint8_t { call, all };  // all: with what was moved without one
  // The thread has ended, or is limited no more. A call that is held was not made then.
  void settle_last(Caller& caller, CallerMoved moved, Settles what, Time now);
  // Another class has the thread, or none: what it owes is written off.
  void drop_debts(const Caller& caller);
  // The gate knows the thread no more.
  void forget(const Caller& caller);

  // --- held calls; the delaying thread ---
  // When the call may go on.
  [[nodiscard]] Time due(PendingCall& call, Time now);
  // It is about to go on early, for these signals.
  static void disturb_delay(PendingCall& call, std::uint64_t signals) { call.signals = signals; }
  // made: it went on; else its thread was killed.
  void end_delay(PendingCall& call, bool made, Time now);
  // It is held no more, or could not be.
  void forget_delay(PendingCall& call);

  // --- pages without a call ---
  struct PagesMoved {
    Tokens read = 0, written = 0;                 // to be paid
    std::uint64_t all_read = 0, all_written = 0;  // that the gate will see, and has not to charge again
    Tokens paged = 0;                             // so much of what was read may be pages of mapped files
    Device pages_disk, tree_disk;
  };
  enum class Charged : std::uint8_t { charged, at_gate, no_class };
  // entries: of the thread, as of its counters. at_gate: another call has come to its gate, which charges all.
  Charged charge_pages(PagePayer& payer, const ClassView& view, pid_t tid, std::uint64_t entries,
                       const PagesMoved& moved, Time now);
  struct Owed {
    Time due;
    Tokens rest = 0;
  };
  [[nodiscard]] Owed owed(PagePayer& payer, Time now);
  void write_off(PagePayer& payer);
  // The stop is over that was for what the process was last charged.
  void end_freeze(PagePayer& payer, std::span<const pid_t> threads, Duration lasted);

  // Threads of the class that owe something, which its other members do not pay, by device; and processes that pay at
  // once.
  struct Debt {
    pid_t tid = 0;  // of a process its id
    Device device;
    Tokens bytes = 0;
  };
  [[nodiscard]] std::vector<Debt> debts(const std::string& name) const;

 private:
  void settle(Caller& caller, const CallerMoved& moved, const ClassView& view, Settles what, Time now);
  void settle_pages(Caller& caller, const CallerMoved& moved, const CallShare& call, const ClassView& view, Time now);
  void settle_workers(Caller& caller, CallerMoved& moved, const ClassView& view, Time now);
  Verdict reserve(Caller& caller, const WantedCall& want, Time now);
  void cancel_last(Caller& caller, Time now);
  void note_signals(Caller& caller, Time now) const;
  void charge(Caller& caller, const ClassView& view, const Device& device, IoDirection direction, Tokens bytes,
              bool pages, Time now);
  [[nodiscard]] Time advance(PendingCall& call, Time now);
  static std::shared_ptr<PendingCall> new_call(Caller& caller);

  Options options_;
  Shaping shaping_;
  ClassTable classes_;
  HeldThreads held_;
  GateEntries entries_;
  std::unordered_map<pid_t, std::shared_ptr<Debts>> debts_;                // of threads that owe something
  std::unordered_map<pid_t, std::shared_ptr<const Debts>> process_debts_;  // of processes that pay at once
};

}  // namespace swapd::decide
