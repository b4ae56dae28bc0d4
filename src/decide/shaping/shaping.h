// When an I/O call may go on [TAP08 §2]. Pure.
//
// A class has buckets for each device: reading and writing together, apart, or both, and of each bytes and operations.
// A call has up to four transfers (it reads here and writes there; a ring may do both, with disks and links); it
// reserves a place in every bucket of every transfer and goes on when all of them let it. It is one operation in each.
// Classes do not wait for one another.
//
// A call that would move far more than a bucket holds waits for its share before it moves anything: it takes its tokens
// turn by turn, so that others of its class have theirs between, and goes on when what it has not taken yet is a tenth
// of a second's worth (Turns). (To stop it while it moves is not to be had: the kernel looks for a signal, or the
// freezer, neither in write(2) to a file nor in copy_file_range(2); in sendfile(2) to a socket it does, but then the
// program gets a short count.) What a call has moved unforeseen is a debt of its thread, which the thread pays in the
// same way before its next call. The class takes half a second's worth of it at most, so that no thread waits for
// another's debt.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "decide/shaping/bucket_pool.h"
#include "decide/shaping/limits.h"
#include "decide/shaping/reservation.h"

namespace swapd::decide {

class Shaping {
 public:
  using ClassIndex = std::uint32_t;

  // Makes the class, or changes its limits: they hold at once for waiting calls, too.
  ClassIndex set(std::string_view name, const ClassLimits& limits, Time now);
  // Its number is another class's then.
  void remove(std::string_view name);
  // The same; what the class has moved is added to the successor's accounts, and so is what its calls under way will
  // have moved.
  void merge_into(std::string_view name, ClassIndex successor, Time now);
  [[nodiscard]] std::optional<ClassIndex> find(std::string_view name) const;

  // Takes the call's places in the buckets of its class.
  [[nodiscard]] Reservation reserve(ClassIndex of, const Transfer* transfers, std::size_t count, Time now);
  // Takes what the call's turns allow by now of what is to be taken. The answer: as due().
  Time advance(Reservation& reservation, Time now);
  // Removes the debts that are paid. The answer: when the others are, or the next turn is. pages_only: only those of
  // pages count.
  Time advance(Debts& debts, bool pages_only, Time now);
  // Lets the call go on before its time (a favoured provider's): gives back the tokens that it has taken, so that what
  // it moves is a debt of its thread.
  void postpone(Reservation& reservation, Time now);
  // When all buckets let the call go on; `now` or before: at once. A bucket that is no more delays no call.
  [[nodiscard]] Time due(const Reservation& reservation, Time now) const;
  // Would a call of this one transfer have the same places?
  [[nodiscard]] bool has_places_of(const Reservation& reservation, ClassIndex of, const Transfer& transfer) const;
  // Half of what its buckets hold at most is there, after `more` besides: no call has to wait for a while.
  [[nodiscard]] bool spares(const Reservation& reservation, Tokens more, Time now) const;
  // bytes: what each transfer has moved; of a transfer at least one token a call is kept. waited: before the call went
  // on. cached: of the first transfer, came from memory. calls: how many it stands for (Reservation::join()).
  struct Moved {
    std::array<Tokens, Reservation::max_transfers> bytes{};
    Tokens cached = 0;
    Duration waited{};
    std::uint64_t calls = 1;
  };
  // The answer: what the call has moved unforeseen and its class does not take, a debt of its thread.
  Reservation settle(const Reservation& reservation, const Moved& moved, Time now);
  // The call was not made.
  void cancel(const Reservation& reservation, Time now);
  // Moved without a call (a mapped file, what a file system writes about its files): owed by the class as far as the
  // class takes it, the rest by the thread. advance() says when that is paid.
  Reservation charge(ClassIndex of, Device device, IoDirection direction, Tokens bytes, Time now);
  // A thread has ended that owed this: it is not paid.
  void write_off(const Debts& debts);
  // The bytes that are owed, by device of the class.
  [[nodiscard]] std::vector<std::pair<Device, Tokens>> owed(const Debts& debts, ClassIndex of) const;
  // The thread that was charged this was stopped for so long.
  void waited(const Reservation& reservation, Duration waited);

  // The work of a class on a device, and the state of its buckets there.
  struct Account {
    Device device;
    std::array<Tokens, 2> bytes{};  // of calls, by IoDirection
    Tokens cached = 0, mapped = 0;  // mapped: without a call, either direction
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
  // The disks' limit of reading and writing together owes no more than what it brings in so long.
  void cap_debt(ClassIndex of, Duration most, Time now);
  // By device, those that are not known more exactly last.
  [[nodiscard]] std::vector<Account> accounts(ClassIndex of, Time now) const;

 private:
  static constexpr std::size_t max_devices = 256;  // of a class; the others share one
  static constexpr std::size_t max_successors = 1000;
  // The account of a class on one device, and the numbers of its buckets there.
  struct DeviceLedger {
    Account account;
    BucketPair both, read, write;
    std::uint32_t version = 0;
    // The ledger that goes on for the version before this one, until this place is used again.
    struct Successor {
      std::uint32_t ledger = 0, version = 0;
    };
    std::optional<Successor> successor;
    [[nodiscard]] const BucketPair& apart(IoDirection direction) const {
      return direction == IoDirection::read ? read : write;
    }
  };
  struct Class {
    std::string name;
    ClassLimits limits;
    std::map<Device, std::uint32_t> ledgers;  // by device: the number in ledgers_
    bool gone = true;
  };
  std::uint32_t ledger_of(Class& its, Device device, Time now);
  std::uint32_t unused_ledger();
  void fit(DeviceLedger& ledger, const DeviceLimits& limits, Time now);
  [[nodiscard]] Account* account(const Reservation& reservation, std::size_t transfer);  // null: its class is no more
  void enter_in_accounts(const Reservation& reservation, const Moved& moved);
  static void take(Reservation::Place& place, TokenBucket& from, Time now);
  void take_places(Reservation& reservation, const BucketPair& pair, std::uint8_t transfer, Tokens cost, Time now);
  void take_place(Reservation& reservation, std::optional<std::uint32_t> bucket, Reservation::Place place, Time now);
  [[nodiscard]] Account::Level level(const BucketPair& pair, const Limit& limit, Time now) const;

  std::map<std::string, ClassIndex, std::less<>> by_name_;
  std::vector<Class> classes_;
  std::vector<std::uint32_t> free_classes_;
  std::vector<DeviceLedger> ledgers_;
  std::deque<std::uint32_t> free_ledgers_;  // the oldest first
  BucketPool buckets_;
};

}  // namespace swapd::decide
