// One epoll set with a callback for each descriptor (epoll(7)). One thread uses it; a round is one epoll_pwait2(2), and
// allocates nothing.
//
// All descriptors stand in the one set directly. A perf descriptor's readiness is gone once it has been asked for, so a
// set inside a set would lose it.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"

namespace swapd::sys {

class EventLoop {
 public:
  struct Ready {
    Time now{};
    bool hung_up = false;  // and will stay so: drop the registration
  };
  using Callback = std::function<void(const Ready&)>;
  // can_wait: more events of the kind may gather before they are dealt with.
  enum class Urgency : std::uint8_t { at_once, can_wait };
  static constexpr std::size_t max_batch = 32;

  // One descriptor in the set; its end takes it out. The descriptor must be open until then, and the loop live.
  class [[nodiscard]] Registration {
   public:
    Registration() = default;
    Registration(Registration&& from) noexcept : loop_(std::exchange(from.loop_, nullptr)), slot_(from.slot_) {}
    Registration& operator=(Registration&& from) noexcept {
      reset();
      loop_ = std::exchange(from.loop_, nullptr);
      slot_ = from.slot_;
      return *this;
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration() { reset(); }
    explicit operator bool() const { return loop_ != nullptr; }
    void reset() {
      if (loop_ != nullptr) std::exchange(loop_, nullptr)->remove(slot_);
    }

   private:
    friend class EventLoop;
    Registration(EventLoop& loop, std::uint32_t slot) : loop_(&loop), slot_(slot) {}
    EventLoop* loop_ = nullptr;
    std::uint32_t slot_ = 0;
  };

  EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Calls back in each round that finds the descriptor readable or hung up. A callback may add, and remove any
  // registration, its own too. Errors as of epoll_ctl(2).
  [[nodiscard]] Result<Registration> add(int fd, Callback callback, Urgency urgency = Urgency::at_once);

  // Waits for events, as long as `timeout` at most (none: without end), and returns how many there are. A signal ends
  // it with 0.
  std::size_t wait(std::optional<Duration> timeout);
  // wait() found events, and all of them can wait.
  [[nodiscard]] bool can_wait() const { return can_wait_; }
  // Calls back for what wait() found, in the kernel's order; not for what was removed meanwhile.
  void dispatch(Time now);

  // For those that only poll(2) for whether wait() would return.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  [[nodiscard]] std::size_t size() const { return slots_.size() - free_.size() - retired_.size(); }

 private:
  struct Slot {
    int fd = -1;
    std::uint32_t generation = 0;  // of the slot's uses: an event of an earlier one is stale
    Urgency urgency = Urgency::at_once;
    Callback callback;
  };
  void remove(std::uint32_t slot);
  void retire();
  static std::uint64_t key(std::uint32_t slot, std::uint32_t generation) {
    return std::uint64_t{generation} << 32 | slot;
  }

  Fd epoll_;
  std::deque<Slot> slots_;  // stay where they are while others are added
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> retired_;  // removed while callbacks run: they may be what runs
  std::array<epoll_event, max_batch> ready_{};
  std::size_t found_ = 0;
  bool can_wait_ = false;
  bool dispatching_ = false;
};

}  // namespace swapd::sys
