// A thread that makes calls which are limited, as the ledger knows it (ledger.h). Values; the arithmetic on them is
// pure.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/io_counters.h"
#include "base/time.h"
#include "decide/shaping/class_table.h"
#include "decide/shaping/reservation.h"

namespace swapd::decide {

// A call may have the disk move so much more than itself: what is read ahead of it, which later calls fetch, so that it
// is not a mapped file's; and the folio of which it writes a few bytes, dirty as a whole.
inline constexpr Tokens moves_besides = 2 << 20;

// How it is known what a call has moved.
struct CallKind {
  enum class Amount : std::uint8_t {
    bytes,       // what it asks for, at most
    nothing,     // it moves nothing itself (fsync): an operation
    entry,       // it reads or changes a directory or an inode: an operation
    submission,  // Linux AIO: its requests say what they ask for
    ring,        // io_uring: accounting alone tells
  } amount = Amount::bytes;
  enum class Told : std::uint8_t {
    by_chars,  // rchar and wchar of /proc/PID/io
    by_none,   // it is what it asked for
    by_disk,   // the disk alone: nothing of it went through the caller's memory
  } told = Told::by_chars;
  // Else it moves what others have made dirty, and paid (fsync), or a directory's blocks, which logical mode leaves
  // out.
  [[nodiscard]] bool moves_bytes(ShapeMode mode) const {
    return amount == Amount::entry ? mode == ShapeMode::device : amount != Amount::nothing;
  }
  [[nodiscard]] bool as_the_disk(ShapeMode mode) const { return mode == ShapeMode::device || told == Told::by_disk; }
};

// The bytes that a call is thought to move. Without transfers: nothing that is limited.
struct WantedCall {
  std::array<Transfer, Reservation::max_transfers> transfers{};
  std::uint8_t count = 0;
  Tokens asked = 1;
  bool known = true;  // that it moves no more
  CallKind kind;
  [[nodiscard]] bool network(std::size_t transfer) const {
    return transfers.at(transfer).device.kind == Device::Kind::network;
  }
  [[nodiscard]] bool reads(std::size_t transfer) const { return transfers.at(transfer).direction == IoDirection::read; }
  void add(const Transfer& transfer) { transfers.at(count++) = transfer; }
};

// A call between its entry and its settlement, which the delaying thread knows, too. Or several that had not to wait,
// of which it is the last (Ledger::join_last()). Changed under the ledger's lock alone.
struct PendingCall {
  pid_t tid = 0;
  Reservation reservation;
  std::uint64_t calls = 1;
  Tokens asked = 0;
  bool cancelled = false;  // it was not made
  bool settled = false;
  bool held = false;           // now
  bool favoured_wait = false;  // also while its thread is favoured
  Time since{};                // that it is held
  Duration waited{};
  std::shared_ptr<Debts> debts;  // its thread's, which are paid first
  bool pages_only = false;       // it moves nothing: debts count as far as they are pages'
  std::uint64_t signals = 0;     // that let it go on early
};

// Its gate keeps it, and changes it through the ledger alone.
struct Caller {
  pid_t tid = 0, tgid = 0;
  const void* gate = nullptr;  // that keeps it
  std::shared_ptr<PendingCall> call;
  std::shared_ptr<PendingCall> unused;  // an earlier call's memory
  ClassViewPtr view;                    // under which the last call was let go on
  WantedCall last;                      // that call
  bool moves = false;                   // it moves something that is limited
  // For what it has moved without a call, or more than its calls were thought to.
  std::shared_ptr<Debts> debts = std::make_shared<Debts>();
  Reservation charged;  // for what it has moved without a call, last
  Tokens ahead = 0;     // that the disk read ahead of its calls
  Time settled{};       // its last call, with all that it had moved
  // Signals that have let its last calls go on early: the next one they do after `patience`, which grows.
  struct {
    std::uint64_t signals = 0;
    Duration patience{};
    Time last{};
  } disturbed;
};

// The bytes that a thread has moved since its last call, as its gate has seen them.
struct CallerMoved {
  IoCounters disk;  // since then
  TrafficCounters traffic;
  bool traffic_is_counted = false;
  IoCounters in_all;                   // as of now
  bool anew = false;                   // counting begins here
  bool has_ended = false;              // a call that is held was not made
  bool another_thread = false;         // that has execed has taken over the id: the last call was not this one's
  std::optional<Device> disk_of_call;  // the last one that a call of the thread used
  // For what it may have moved without a call (may_owe_pages()).
  Tokens paged = 0;  // so much of what was read may be pages of mapped files, at most; the rest is directories
  Device pages_disk, tree_disk;
  // The bytes that io_uring's own threads in the program have moved.
  struct Worker {
    pid_t tid = 0;
    IoCounters disk;
  };
  std::vector<Worker> workers;
  TrafficCounters workers_traffic;
  Device workers_disk, workers_link;
};

// The next call may be settled together with the last one, as far as the caller alone tells: it is like that one, soon
// after it, and cannot move more than is known of it (a receiver's may).
[[nodiscard]] bool may_join_last(const Caller& caller, const ClassView& view, Time now);

// The last call's part of all that its thread has moved.
struct CallShare {
  Shaping::Moved moved;
  Tokens read = 0, written = 0;  // from and to a disk
};
[[nodiscard]] CallShare share_of_call(const Caller& caller, ShapeMode mode, const CallerMoved& moved);

// The bytes that were moved without a call, or beyond it: pages of mapped files, directories and inodes.
struct MovedWithoutCall {
  Tokens read = 0, written = 0;
  bool of_call = false;      // on the last call's disk: what is read ahead of it
  bool has_network = false;  // the call had a connection, whose traffic is its own
  Tokens ahead = 0;          // Caller::ahead from now on
};
[[nodiscard]] MovedWithoutCall moved_without_call(const Caller& caller, ShapeMode mode, const CallerMoved& moved,
                                                  const CallShare& call);
// The same before the ledger takes off what was paid already: no less.
[[nodiscard]] MovedWithoutCall may_owe_pages(const Caller& caller, ShapeMode mode, const CallerMoved& moved);

}  // namespace swapd::decide
