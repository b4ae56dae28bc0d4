// Thrashing: programs wait for pages that were put out a moment ago to make room for others, which are put out for
// these [Peachey84 §4.2]. Pure.
//
// A page that comes back from swap says little, nor does one that goes out: a program that is used again after an hour
// brings back what it needs, and puts out what another has not used for long. Both at once, of pages that had not been
// out for long (the kernel's refaults), for some windows, is thrashing. A scan of files moves no such page. How much of
// it is too much is told by the time that it takes: a page from compressed memory costs a hundredth of one from a disk.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace swapd::decide {

struct MemoryWindow {
  Duration length{};
  std::uint64_t refaults = 0;     // anonymous pages that came back not long after they had gone out
  std::uint64_t in = 0, out = 0;  // pages swapped
  Duration page_cost{};           // about what it takes to bring one back
};

struct ThrashingConfig {
  double lost = 0.15;     // of the window, that programs together wait for pages to come back; less is no thrashing
  double refaults = 0.3;  // of the pages that come back, that are such
  double both = 0.3;      // of the pages that come back, that go out meanwhile
  int begins_after = 3;   // of the last four windows
  int quiet = 4;          // windows in a row without, and with less than a third of `lost`, to be calm
};

class Thrashing {
 public:
  explicit Thrashing(ThrashingConfig config = {}) : config_(config) {}
  void window(const MemoryWindow& window);
  [[nodiscard]] bool there() const { return there_; }
  // Memory is at rest: something may come back.
  [[nodiscard]] bool calm() const { return calm_windows_ >= config_.quiet; }
  // 0…: of the last window, that programs waited so.
  [[nodiscard]] double lost() const { return lost_; }
  // After a change the windows seen before count no more.
  void begin_anew();

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.last_, self.calm_windows_, self.there_, self.lost_);
  }

 private:
  ThrashingConfig config_;
  std::uint32_t last_ = 0;  // a bit a window
  int calm_windows_ = 0;
  bool there_ = false;
  double lost_ = 0;
};

}  // namespace swapd::decide
