// Changes that swapd has made and not yet undone, kept so that a crash does not lose them (docs/design.md, Donation).
//
// A mapped file of fixed-size records: a record is a store to memory, which the kernel keeps when the process is
// killed; there is no fsync, because scheduling attributes do not outlive a boot either. A record is written before the
// change it tells of and is never altered: a changed boost gets a new record first, then the old one is cleared. A
// record counts from its last store on, so one whose writer was killed in the middle of it is none. A record whose
// checksum does not fit was damaged otherwise.
//
// The directory belongs on a tmpfs (/run): on a disk's file system the first store to a page after each writeback waits
// for that file system's journal, and the store is the real-time engine's. Nothing is lost by it, since a new boot
// voids all records.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/sched_attr.h"
#include "base/thread_id.h"

namespace swapd::actuate {

// One change. thread: `base` was its own, `set` is what it was given. The groups: `old_value` was found and `new_value`
// written: a nice value for an autogroup, a weight for a cgroup (of the CPU, of disks), its cpu.idle (0 or 1). An I/O
// priority likewise, of `thread`.
struct Change {
  enum class Kind : std::uint8_t {
    thread = 1,
    autogroup,
    cgroup,
    io_priority,
    bfq_cgroup,
    iocost_cgroup,
    idle_cgroup
  } kind = Kind::thread;
  ThreadId thread;         // of a group: a member of it
  pid_t leader = 0;        // autogroup: its session's leader, where known
  std::int64_t group = 0;  // autogroup's id
  std::string path;        // of a cgroup
  SchedAttr base;
  SchedAttr set;
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;
  std::uint64_t sequence = 0;  // set by the journal; the later of two changes of one thing is the newer

  bool operator==(const Change&) const = default;
};

class Journal {
 public:
  using Slot = std::size_t;
  static constexpr Slot none = SIZE_MAX;
  static constexpr std::size_t capacity = 1024;
  static constexpr std::size_t max_path = 383;

  // Opens or makes STATE_DIR/journal (and the directory), locked against a second swapd (EBUSY). `boot_id` is the
  // present boot's. A file that is not a journal of this version is set aside as journal.bad.
  [[nodiscard]] static Result<Journal> open(const std::string& state_dir, std::string_view boot_id);
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&& other) noexcept;
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  struct Left {
    Slot slot;
    Change change;
  };
  // Changes that an earlier run of this boot left, the oldest first. They stay until cleared.
  [[nodiscard]] const std::vector<Left>& left() const { return left_; }
  // Things worth one log line: a file set aside, damaged records, another boot's.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  // ENOSPC: all records are in use. ENAMETOOLONG: the path does not fit. [engine]
  [[nodiscard]] Result<Slot> write(const Change& change);
  void clear(Slot slot);  // `none` is fine
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  Journal() = default;
  void load(std::string_view boot_id);
  [[nodiscard]] std::byte* at(Slot slot) const;

  Fd fd_;
  std::byte* map_ = nullptr;
  std::size_t next_ = 0;
  std::size_t used_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<Left> left_;
  std::vector<std::string> notes_;
};

}  // namespace swapd::actuate
