// Records for a recording, on their way from the engine to the control thread.
//
// The engine must not wait for the recording: it appends under a lock that is held for a move, to memory that was
// reserved before, and where the ring is full it counts and goes on. What is lost would leave the replayed model in
// another state than the live one, so after a loss nothing is taken until a fresh snapshot has been put in front.
// Without a recording, a record costs the test of a flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "base/event.h"
#include "model/model.h"
#include "replay/record.h"
#include "sys/process/pi_mutex.h"

namespace swapd::daemon {

class RecordRing {
 public:
  // The state that a recording starts from, at its begin and after each loss.
  struct Opening {
    std::uint64_t lost = 0;  // records before it; 0 at the begin
    model::Settings settings;
    decide::DonationConfig donation;
    decide::CoschedulingConfig coscheduling;
    decide::LevelsConfig levels;
    decide::MemoryConfig memory;
    decide::BudgetConfig budgets;
    replay::Snapshot snapshot;
  };
  using Item = std::variant<Event, decide::Input, decide::Turn, replay::Left, std::unique_ptr<replay::Granted>,
                            std::unique_ptr<Opening>>;

  // wake: an eventfd that is rung when there is something to take.
  explicit RecordRing(int wake, std::size_t max_items = 32768, std::size_t max_parts = std::size_t{1} << 18);

  // --- engine thread ---
  [[nodiscard]] bool on() const { return on_.load(std::memory_order_relaxed); }
  // Call these only while on().
  void event(const Event& event);
  void input(const decide::Input& input);
  // idle: the deciders have nothing in flight, and none has asked for this turn; then a turn without news, or a tick,
  // changes nothing and is left out.
  void turn(const decide::Turn& turn, bool idle);
  void left(ThreadId thread);
  void granted(const decide::Panel& panel, Time now);
  // Begins, or goes on after a loss, with this snapshot. It goes in even where the ring is full.
  void open(std::unique_ptr<Opening> opening);

  // --- control thread ---
  void reserve();
  // The records since the last call; valid until the next one.
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
  // Whether there is room for another; with the lock held.
  [[nodiscard]] bool admit(std::size_t parts, Time now);
  template <typename Make>
  void append(std::size_t parts, Time now, Make make);
  void ring() const;

  const int wake_;
  const std::size_t max_items_, max_parts_;
  std::atomic<bool> on_{false};
  sys::PiMutex mutex_;  // all below but taken_ and news_
  bool open_ = false;
  bool gap_ = false;
  std::uint64_t lost_ = 0;
  Time again_at_{};
  std::size_t parts_ = 0;
  std::vector<Item> items_;
  std::vector<Item> taken_;
  bool news_ = true;  // since the last turn. Engine thread.
};

}  // namespace swapd::daemon
