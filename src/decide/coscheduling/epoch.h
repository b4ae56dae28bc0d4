// Epochs: a CPU that has left a job is not called back to it by messages of CPUs that have not left it yet, so that all
// go on to the next job together [DCS97 §3.3]. Pure.
//
// Each CPU has a counter, which grows at each spontaneous switch: a switch that no message asked for. A message carries
// the epoch of the CPU that sent it, and calls only if that is greater than the receiver's, which then adopts it. The
// low bits of a new epoch are the number of the CPU that made it, so that two CPUs that switched to different jobs
// never have the same; an adopted epoch is taken and compared as a whole. So the CPUs that run one job usually share
// the epoch of the first of them that switched to it.
#pragma once

#include <compare>
#include <cstdint>

namespace swapd::decide::coscheduling {

class Epoch {
 public:
  // 44 bits of count: at a million switches a second they last for 200 days.
  static constexpr unsigned cpu_bits = 20;
  static constexpr std::uint32_t max_cpu = (1U << cpu_bits) - 1;

  constexpr Epoch() = default;  // before any switch
  [[nodiscard]] static constexpr Epoch made(std::uint64_t count, std::uint32_t cpu) {
    return Epoch(count << cpu_bits | (cpu & max_cpu));
  }
  [[nodiscard]] constexpr std::uint64_t count() const { return value_ >> cpu_bits; }
  [[nodiscard]] constexpr std::uint32_t cpu() const { return value_ & max_cpu; }  // the CPU that made it
  // The next epoch, as made on `cpu`.
  [[nodiscard]] constexpr Epoch next(std::uint32_t cpu) const { return made(count() + 1, cpu); }
  constexpr auto operator<=>(const Epoch&) const = default;  // NOLINT(modernize-use-nullptr): of a comparison it makes

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.value_);
  }

 private:
  explicit constexpr Epoch(std::uint64_t value) : value_(value) {}
  std::uint64_t value_ = 0;
};

// The counter of one CPU.
class EpochCounter {
 public:
  constexpr EpochCounter() = default;
  explicit constexpr EpochCounter(std::uint32_t cpu) : cpu_(cpu) {}

  // The epoch that a message sent now carries.
  [[nodiscard]] constexpr Epoch current() const { return current_; }
  // Call at each switch to another job that no message asked for.
  constexpr void switched() { current_ = current_.next(cpu_); }
  // True if a message of this epoch may call.
  [[nodiscard]] constexpr bool may_call(Epoch message) const { return message > current_; }
  // Call when a message's call was granted. An epoch that is not greater is not taken.
  constexpr void adopt(Epoch message) {
    if (message > current_) current_ = message;
  }

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.current_, self.cpu_);
  }

 private:
  Epoch current_;
  std::uint32_t cpu_ = 0;
};

}  // namespace swapd::decide::coscheduling
