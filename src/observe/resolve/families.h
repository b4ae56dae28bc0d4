// Providers of waits for signals, by families of processes.
//
// A server with a process for each client (PostgreSQL, Apache) has its processes wake each other by signals: a lock is
// released, and the next in the queue gets a SIGURG. The process that waits may be a second old, so that of itself
// nothing has been learnt; of its siblings much has. A family is what a parent has forked and what runs the parent's
// program still.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "base/thread_id.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

struct Family {
  ThreadId parent;        // a process
  std::uint64_t dev = 0;  // the program that all of them run
  std::uint64_t ino = 0;

  auto operator<=>(const Family&) const = default;
  [[nodiscard]] bool valid() const { return parent.valid(); }
};

// Not valid where its parent runs another program, or cannot be looked at. Some ten µs: once a process.
[[nodiscard]] Family family_of(const sys::Procfs& procfs, pid_t tgid);

// Pure.
class FamilySenders {
 public:
  static constexpr std::size_t max_senders = 8;    // of a family
  static constexpr std::size_t max_families = 64;  // then the one that was heard of last makes room

  // `by`, of another process of the family, ended a member's wait by a signal. by_handler: the wait was not for signals
  // as far as could be seen, so its handler did the rest (a latch with a pipe to oneself), or it was an interruption.
  void ended(const Family& family, ThreadId by, bool by_handler);
  [[nodiscard]] bool knows(const Family& family, ThreadId by) const;
  // Whether waits in poll, select and epoll are for signals although no member of the set says so.
  [[nodiscard]] bool has_latches(const Family& family) const;
  // Those that have, the one that did so most often first; of equals the one that did so last.
  [[nodiscard]] std::vector<ThreadId> of(const Family& family) const;
  void forget(ThreadId thread);
  // Grows with each change that of() shows.
  [[nodiscard]] std::uint64_t version() const { return version_; }

 private:
  static constexpr std::uint32_t min_handled = 2;  // one may be an interruption
  static constexpr std::uint32_t max_wakes = 16;   // what was long ago does not outweigh what is now for ever
  struct Sender {
    ThreadId thread;
    std::uint32_t wakes = 0;
    std::uint64_t last = 0;  // version
  };
  struct Known {
    std::vector<Sender> senders;
    std::uint64_t last = 0;
    std::uint32_t handled = 0;  // waits that were ended by a handler
  };
  std::map<Family, Known> families_;
  std::uint64_t version_ = 0;
};

}  // namespace swapd::observe
