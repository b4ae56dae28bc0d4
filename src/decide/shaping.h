// Which I/O call may go on when ([TAP08]; docs/design.md, Shaping). Pure.
//
// A class has buckets for each device: reading and writing together, apart, or both, and of each bytes and operations.
// A call has up to four legs (it reads here and writes there; a ring may do both, with disks and links); it takes its
// place in every bucket of every leg and goes on when all of them let it. An operation it is once in each. Classes do
// not wait for one another.
//
// A call that would move far more than a bucket holds waits for its share before it moves anything: it takes its tokens
// turn by turn, so that others of its class have theirs between, and goes on when what it has not taken yet is a tenth
// of a second's worth (Turns). (To stop it while it moves is not to be had: the kernel looks for a signal, or the
// freezer, neither in write(2) to a file nor in copy_file_range(2); in sendfile(2) to a socket it does, but then the
// program gets a short count.) What a call has moved unforeseen is a debt of its thread, which it pays in the same way
// before its next call. The class takes half a second's worth of it at most, so nobody stands for another's debt.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "decide/bucket.h"

namespace swapd::decide {

// number: of a disk MAJOR << 32 | MINOR; of a network link its index, with its network namespace's number above; 0: one
// that is not known more exactly.
struct Device {
  enum class Kind : std::uint8_t { disk, network } kind = Kind::disk;
  std::uint64_t number = 0;
  auto operator<=>(const Device&) const = default;  // NOLINT(modernize-use-nullptr): of a comparison that it makes
};

enum class Way : std::uint8_t { read, write };

// What one bucket pair allows; nothing: no limit.
struct Limit {
  std::optional<Tokens> bytes, operations;  // a second
  std::optional<Tokens> burst;              // bytes; not said: what `bytes` brings in 50 ms, at least 4 KiB
  [[nodiscard]] bool limits() const { return bytes || operations; }
  bool operator==(const Limit&) const = default;
};
inline constexpr Tokens min_burst = 4 << 10;

// How large calls and debts share a bucket with others, in its tokens.
struct Turns {
  Tokens share = 1;   // that a large call takes at a turn: what 10 ms bring
  Tokens ahead = 0;   // a call may move that much before it is paid: what 100 ms bring, at least 4 KiB
  Tokens others = 0;  // of what one thread has moved unforeseen the class owes no more: what 500 ms bring
};
[[nodiscard]] Turns turns_of(const BucketRules& rules);

struct DeviceLimits {
  Limit both, read, write;
  [[nodiscard]] bool limits() const { return both.limits() || read.limits() || write.limits(); }
  [[nodiscard]] bool counts_operations() const { return both.operations || read.operations || write.operations; }
  bool operator==(const DeviceLimits&) const = default;
};

enum class ShapeMode : std::uint8_t {
  logical,  // what calls move
  device,   // what the disk moves: what comes from the page cache is free (the paper's RESOURCE mode)
};

struct ClassLimits {
  ShapeMode mode = ShapeMode::logical;
  bool freezes = false;          // a process pays at once for pages of mapped files
  bool favoured_wait = false;    // a favoured provider is delayed as well while an important requester waits for it
  DeviceLimits disks, networks;  // each device that is not named
  std::map<Device, DeviceLimits> devices;
  [[nodiscard]] bool limits() const;
  [[nodiscard]] bool counts_operations() const;  // of disks
  bool operator==(const ClassLimits&) const = default;
};

struct Leg {
  Device device;
  Way way = Way::read;
  Tokens cost = 1;  // bytes that it is thought to move
};

// A call's places. Empty: nothing limits it.
struct Passage {
  struct Place {
    std::uint32_t bucket = 0, version = 0;
    Bucket::Ticket ticket = 0;
    Tokens cost = 1;  // taken
    Tokens rest = 0;  // to be taken, turn by turn
    bool operations = false;
    bool after = false;  // goes on when its own tokens have come, too
    std::uint8_t leg = 0;
  };
  static constexpr std::size_t max_legs = 4;
  static constexpr std::size_t max_places = max_legs * 4;
  std::array<Place, max_places> places{};
  std::uint8_t count = 0;
  std::uint8_t legs = 0;
  std::array<std::uint32_t, max_legs> accounts{}, versions{};  // of each leg, for what has come of it
  std::array<Way, max_legs> ways{};
  [[nodiscard]] bool empty() const { return legs == 0; }
  [[nodiscard]] Tokens rest() const;  // the largest of its places'
  // Both in one, to be settled together. False: the other one has other places.
  [[nodiscard]] bool join(const Passage& earlier);
  // Of one leg each: on the same device of the same class, in the same direction.
  [[nodiscard]] bool is_alike(const Passage& other) const {
    return accounts[0] == other.accounts[0] && versions[0] == other.versions[0] && ways[0] == other.ways[0];
  }
};

// What one thread owes.
class Debts {
 public:
  // pages: of mapped files, which are paid before any call; else before one that moves something.
  void add(const Passage& debt, bool pages);
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] Tokens rest() const;  // of the largest, what its class has not taken
  void clear() { all_.clear(); }

 private:
  friend class Shaping;
  struct Debt {
    Passage passage;
    bool pages = false;
  };
  std::vector<Debt> all_;
};

class Shaping {
 public:
  using ClassIndex = std::uint32_t;

  // Makes the class, or changes its limits: whoever waits has them at once.
  ClassIndex set(std::string_view name, const ClassLimits& limits, Time now);
  // Its number is another class's then.
  void remove(std::string_view name);
  // The same; what it has moved is added to another's accounts, and so is what its calls under way will have.
  void retire(std::string_view name, ClassIndex heir, Time now);
  [[nodiscard]] std::optional<ClassIndex> find(std::string_view name) const;

  // Takes the call's places in the buckets of its class.
  [[nodiscard]] Passage enter(ClassIndex of, const Leg* legs, std::size_t count, Time now);
  // Takes what its turns allow by now of what is to be taken. The answer: as due().
  Time advance(Passage& passage, Time now);
  // Those that are paid are gone. When the others are, or the next turn is. pages_only: only those of pages count.
  Time advance(Debts& debts, bool pages_only, Time now);
  // Lets the call go on before its time (a favoured provider's): gives back the tokens that it has taken, so that what
  // it moves is a debt of its thread.
  void postpone(Passage& passage, Time now);
  // When all of them let it go on; `now` or before: at once. A bucket that is no more holds nobody.
  [[nodiscard]] Time due(const Passage& passage, Time now) const;
  // Would a call of this one leg have the same places?
  [[nodiscard]] bool has_places_of(const Passage& passage, ClassIndex of, const Leg& leg) const;
  // Half of what its buckets hold at most is there, after `more` besides: nobody has to wait for a while.
  [[nodiscard]] bool spares(const Passage& passage, Tokens more, Time now) const;
  // What each leg has moved; of a leg at least one token a call is kept. waited: before it went on. cached: of the
  // first leg, came from memory. calls: that it stands for (Passage::join()).
  struct Moved {
    std::array<Tokens, Passage::max_legs> bytes{};
    Tokens cached = 0;
    Duration waited{};
    std::uint64_t calls = 1;
  };
  // The answer: what it has moved unforeseen and its class does not take, a debt of its thread.
  Passage settle(const Passage& passage, const Moved& moved, Time now);
  // It was not made.
  void withdraw(const Passage& passage, Time now);
  // Moved without a call (a mapped file, what a file system writes about its files): owed by the class as far as the
  // class takes it, the rest by the thread. advance() says when that is paid.
  Passage charge(ClassIndex of, Device device, Way way, Tokens bytes, Time now);
  // A thread has ended that owed this: nobody pays it.
  void write_off(const Debts& debts);
  // What it owes of each of the class's devices, bytes.
  [[nodiscard]] std::vector<std::pair<Device, Tokens>> owed(const Debts& debts, ClassIndex of) const;
  // Somebody was stopped until then.
  void waited(const Passage& passage, Duration waited);

  // What a class has done on a device, and what is in the buckets.
  struct Account {
    Device device;
    std::array<Tokens, 2> bytes{};  // of calls, by Way
    Tokens cached = 0, mapped = 0;  // mapped: without a call, either way
    Tokens written_off = 0;         // owed by threads that have ended
    std::uint64_t calls = 0, delayed = 0;
    Duration waited{};
    struct Level {
      Limit limit;
      std::optional<Tokens> bytes, operations;  // in the buckets now; below 0: owed
    };
    Level both, read, write;
    void add(const Account& other);  // what was moved; the levels stay
  };
  // Its disks' limit of reading and writing together owes no more than what that brings in so long.
  void forgive(ClassIndex of, Duration most, Time now);
  // By device, those that are not known more exactly last.
  [[nodiscard]] std::vector<Account> accounts(ClassIndex of, Time now) const;

 private:
  static constexpr std::size_t max_devices = 256;  // of a class; the others share one
  static constexpr std::size_t max_heirs = 1000;
  struct Slot {
    std::optional<Bucket> bucket;
    std::uint32_t version = 0;
  };
  struct Pair {  // one Limit's
    std::optional<std::uint32_t> bytes, operations;
  };
  struct Books {
    Account account;
    Pair both, read, write;
    std::uint32_t version = 0;
    // Of what ended with the version before, until the place is used again.
    struct Heir {
      std::uint32_t books = 0, version = 0;
    };
    std::optional<Heir> heir;
  };
  struct Class {
    std::string name;
    ClassLimits limits;
    std::map<Device, std::uint32_t> books;  // by device: the number in books_
    bool gone = true;
  };
  template <typename T>
  static std::uint32_t place(std::vector<T>& all, std::vector<std::uint32_t>& unused);
  [[nodiscard]] const DeviceLimits& limits_of(const Class& one, const Device& device) const;
  std::uint32_t books_of(Class& one, Device device, Time now);
  void fit(Books& books, const DeviceLimits& limits, Time now);
  void fit(Pair& pair, const Limit& limit, Time now);
  void fit(std::optional<std::uint32_t>& slot, std::optional<BucketRules> rules, Time now);
  [[nodiscard]] const Bucket* bucket(const Passage::Place& place) const;
  [[nodiscard]] Bucket* bucket(const Passage::Place& place) {
    return const_cast<Bucket*>(std::as_const(*this).bucket(place));
  }
  [[nodiscard]] Account* account(const Passage& passage, std::size_t leg);  // null: its class is no more
  static void take(Passage::Place& place, Bucket& from, Time now);
  void add(Passage& passage, const Pair& pair, std::uint8_t leg, Tokens cost, Time now);
  [[nodiscard]] Account::Level level(const Pair& pair, const Limit& limit, Time now) const;

  std::map<std::string, ClassIndex, std::less<>> by_name_;
  std::vector<Class> classes_;
  std::vector<Books> books_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_classes_, free_slots_;
  std::deque<std::uint32_t> free_books_;  // the oldest first
};

}  // namespace swapd::decide
