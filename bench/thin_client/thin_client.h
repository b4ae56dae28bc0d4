// Figures of `swapbench thin-client`.
#pragma once

#include <vector>

namespace swapd::bench {

// Times of one window, in seconds from its begin, and its length: pure, for the figures below.
struct Window {
  double length_s = 0;
  std::vector<double> at_s;
};

// Events a second: all.
[[nodiscard]] double rate_of_all(const Window& window);
// Frames a second that were drawn in time: no more than half a period after they were due. A frame is due a period
// after the one before it was due; a player that is more than `gives_up_s` late begins a new count there.
[[nodiscard]] double rate_in_time(const Window& window, double period_s, double gives_up_s);
// Seconds a page: the window's length where there was none at all.
[[nodiscard]] double seconds_each(const Window& window);

}  // namespace swapd::bench
