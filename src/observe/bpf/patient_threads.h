// Threads that wait so often that their waits are kept silent, and the looks at them (docs/design.md, Observers). Pure:
// slots are read through functions.
//
// A wait that a look has seen before has lasted since then. It is to be told where a thread that may end it lacks a
// CPU, which is an inversion, or where it has outlasted the thread's patience. So is a new one, if the look before
// found an inversion too: many short ones cost a thread as much as a long one. Those that may end a wait are the last
// few that looks have found to have ended the thread's waits: a client of several servers waits for any of them.
//
// Looks are made once in the shortest patience while they find inversions, less often the longer they find none, and
// never so often that the looks themselves would take more than some hundredth of a CPU. (An inversion that the
// kernel's program tells is none of theirs: it needs a look when the thread's rest is over.)
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "sys/bpf/bpf_tracer.h"

namespace swapd::observe {

class PatientThreads {
 public:
  static constexpr Duration min_interval = std::chrono::milliseconds(1);
  // Or the shortest patience, if that is longer. The engine's tick is as long: one turn does for both.
  static constexpr Duration max_interval = std::chrono::milliseconds(10);
  static constexpr Duration max_pace = std::chrono::milliseconds(16);
  static constexpr Duration a_look = std::chrono::microseconds(10);  // one per hundred of what a look takes
  static constexpr Duration min_outlasting = std::chrono::milliseconds(10);
  static constexpr std::size_t max_told = 16;  // in one look: inversions first
  static constexpr std::size_t max_outlasting = 4;
  // While help works, a lesser thread seldom runs, and a look is rarely at that moment.
  static constexpr Duration stays_contended = std::chrono::milliseconds(500);
  static constexpr std::size_t max_wakers = 8;  // of one thread, that are remembered
  static constexpr int rest_patiences = 4;      // after an inversion, a thread rests this many times its patience

  struct Slots {
    std::function<std::optional<sys::SlotGlance>(pid_t)> glance;
    std::function<pid_t(pid_t)> woken_by;  // the managed thread that ended its last wait; 0: none
    // The kernel priority of the least important thread that has a CPU and is not watched; 0: there is none. Takes
    // longer than all else: a look asks once, where it has to know.
    std::function<int()> least_running;
  };
  explicit PatientThreads(Slots slots) : slots_(std::move(slots)) {}

  void add(pid_t tid, Duration patience, Time now);
  void remove(pid_t tid);
  void set_patience(pid_t tid, Duration patience);
  [[nodiscard]] bool empty() const { return threads_.empty(); }
  // Lately a thread that matters less than one of these had a CPU.
  [[nodiscard]] bool contended(Time now) const { return now < contended_until_; }
  // When look() is due; empty: never.
  [[nodiscard]] std::optional<Time> due() const;
  // It is, or will be so soon that a turn which is made anyhow had better look.
  [[nodiscard]] bool due_about(Time now) const { return !threads_.empty() && now >= next_ - interval_ / 4; }

  // Its wait was told because of an inversion, without a look. As after one that a look finds, it is told of no other
  // for some time: what can be done is being done. Then a look is due, which ends its rest.
  void told_of_inversion(pid_t tid, Time now);

  struct Found {
    std::vector<pid_t> told;  // threads whose present wait is to be told
    // All, with how many waits they have begun.
    struct Seen {
      pid_t tid = 0;
      std::uint32_t waits = 0;
    };
    std::vector<Seen> seen;
    std::vector<pid_t> rested;  // threads that may be told of inversions again
  };
  // The answer is valid until the next call.
  [[nodiscard]] const Found& look(Time now);

 private:
  struct Patient {
    pid_t tid = 0;
    Duration patience{};
    std::uint32_t waits = 0;  // as of the last look …
    bool silent = false;      // … in which it waited, untold
    Time since{};             // the first look that saw this wait
    bool inverted = false;    // the last look found it waiting while a provider lacked a CPU
    std::array<pid_t, max_wakers> wakers{};
    std::size_t next_waker = 0;
    bool rests = false;  // from inversions …
    Time rested{};       // … until then
    void rest(Time now);
  };
  void note_waker(Patient& one) const;
  [[nodiscard]] bool lacks_a_provider(const Patient& one) const;
  void tell(Patient& one, Time now);
  void tell_those_who_wait_for_told(Time now);

  // Looks are no more frequent than the least patient thread wants, nor less than what conversations are told by.
  [[nodiscard]] Duration shortest() const;

  Slots slots_;
  std::vector<Patient> threads_;
  Duration interval_ = min_interval;
  Time next_{};
  Time contended_until_{};
  std::size_t first_ = 0;  // where the next look begins
  Found found_;
};

}  // namespace swapd::observe
