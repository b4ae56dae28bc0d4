// The level of a thread: it rises by what the thread awaits, and sinks as it uses CPU time [Peachey84 §4.1]. Pure.
//
// Sixteen levels, 15 the best. A thread that uses its CPU all the time is at its base level, which its nice value
// gives. One that blocks is at its base level plus what the event is worth, at least. A quantum of CPU time takes one
// level away, and is the longer the lower the level is.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "base/words.h"

namespace swapd::decide {

// Events that a thread waits for, by how soon a person expects the answer; the greater, the sooner.
enum class Awaited : std::uint8_t { other, disk, terminal_output, terminal_input };
inline constexpr auto awaited_words = words<Awaited>({{"other", Awaited::other},
                                                      {"disk", Awaited::disk},
                                                      {"terminal-output", Awaited::terminal_output},
                                                      {"terminal-input", Awaited::terminal_input}});

class ThreadLevel {
 public:
  static constexpr int highest = 15, of_nice_0 = 5;
  // Levels that the event is worth.
  [[nodiscard]] static int rise_of(Awaited awaited);
  // Four nice values are a level.
  [[nodiscard]] static int base_of(int nice);
  // CPU time at the level that takes it away.
  [[nodiscard]] static Duration quantum(int level);

  explicit ThreadLevel(int nice = 0) : base_(base_of(nice)), level_(base_) {}

  // The thread has another nice value of its own. What it has risen above its base level stays.
  void set_nice(int nice);
  // It blocks. True: it has risen, or awaits again what it was raised for.
  bool blocks(Awaited awaited, Time now);
  // It has used a quantum of its level.
  void uses_quantum();
  // To its base level at once.
  void sink() { level_ = base_; }

  [[nodiscard]] int level() const { return level_; }
  [[nodiscard]] int base() const { return base_; }
  [[nodiscard]] int above() const { return level_ - base_; }
  // A person waits for what it does.
  [[nodiscard]] bool interactive() const { return above() > 0 && why_ >= Awaited::terminal_output; }
  // The event that it was raised for last, and when that was.
  [[nodiscard]] Awaited why() const { return why_; }
  [[nodiscard]] Time since() const { return since_; }

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.base_, self.level_, self.why_, self.since_);
  }

 private:
  int base_, level_;
  Awaited why_ = Awaited::other;
  Time since_ = never;
};

}  // namespace swapd::decide
