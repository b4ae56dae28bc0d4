// Figures of `swapbench thin-client`.
#pragma once

#include <vector>

namespace swapd::bench {

// Times of one window, in seconds from its begin, and its length: pure, for the figures below.
struct Window {
  double length_s = 0;
  std::vector<double> at_s;
};

// Frames a second: all that were drawn.
[[nodiscard]] double frame_rate(const Window& window);
// The part of the gaps between neighbours that are longer than one and a half of the film's: frames that came late.
[[nodiscard]] double late_share(const Window& window, double period_s);
// Seconds a page: the window's length where there was none at all.
[[nodiscard]] double seconds_each(const Window& window);

}  // namespace swapd::bench
