// What a recording needs of the engine, on its way to the control thread.
//
// The engine must not wait for whoever records: it appends under a lock that is held for a move, to memory that was
// reserved before, and where the ring is full it counts and goes on. What is lost would leave the replayed model in
// another state than the live one, so after a loss nothing is taken until a fresh snapshot has been put in front.
// While nobody records, a record costs the test of a flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "base/event.h"
#include "decide/donation.h"
#include "model/model.h"
#include "replay/record.h"
#include "sys/process/pi_mutex.h"

namespace swapd::daemon {

class RecordRing {
 public:
  // What a recording begins with, at its begin and after each loss.
  struct Opening {
    std::uint64_t lost = 0;  // records before it; 0 at the begin
    model::Settings settings;
    decide::DonationRules rules;
    replay::Snapshot snapshot;
  };
  using Item = std::variant<Event, replay::Decided, replay::Forgotten, std::unique_ptr<Opening>>;

  // wake: an eventfd that is rung when there is something to take.
  explicit RecordRing(int wake, std::size_t max_items = 32768, std::size_t max_parts = std::size_t{1} << 18);

  // --- engine thread ---
  [[nodiscard]] bool on() const { return on_.load(std::memory_order_relaxed); }
  void event(const Event& event) {
    if (on()) push(event);
  }
  void decided(const std::vector<ThreadId>& requesters, const std::vector<decide::Donation>& donations, Time now) {
    if (on()) push(requesters, donations, now);
  }
  void forgotten(ThreadId requester) {
    if (on()) push(requester);
  }
  // Begins, or goes on after a loss, with this snapshot. It goes in even where the ring is full.
  void open(std::unique_ptr<Opening> opening);

  // --- control thread ---
  void reserve();
  // What has come since; valid until the next call.
  [[nodiscard]] std::vector<Item>& take();
  // The taker has had to throw so many records away: a loss like any other.
  void lose(std::uint64_t records, Time now);
  // A loss is to be made good: open() is wanted. Not at once, so that a snapshot is not made for each of many losses.
  [[nodiscard]] bool wants_snapshot(Time now);
  // Records lost since the last opening.
  [[nodiscard]] std::uint64_t lost();
  void close();    // what is in it stays
  void release();  // its memory, after that

  static constexpr Duration pause = std::chrono::seconds(1);  // from a loss to the next snapshot

 private:
  void push(const Event& event);
  void push(const std::vector<ThreadId>& requesters, const std::vector<decide::Donation>& donations, Time now);
  void push(ThreadId requester);
  // Whether there is room for another; with the lock held.
  [[nodiscard]] bool admit(std::size_t parts, Time now);
  template <typename Make>
  void append(std::size_t parts, Time now, Make make);
  void ring() const;

  const int wake_;
  const std::size_t max_items_, max_parts_;
  std::atomic<bool> on_{false};
  sys::PiMutex mutex_;  // all below but taken_ and decided_nothing_
  bool open_ = false;
  bool gap_ = false;
  std::uint64_t lost_ = 0;
  Time again_at_{};
  std::size_t parts_ = 0;
  std::vector<Item> items_;
  std::vector<Item> taken_;
  bool decided_nothing_ = false;  // the last decision: nobody waited. Engine thread.
};

}  // namespace swapd::daemon
