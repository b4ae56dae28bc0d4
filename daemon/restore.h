// `swapd --restore`: a swapd was killed, and no other takes its place.
#pragma once

#include <string>

namespace swapd::daemon {

// Gives back what the journal in the state directory says was lent, and ends. The exit status: 0 done, or there was
// nothing; 1 the journal cannot be had (a running swapd uses it), or something in it could not be given back, which is
// said in a line each. Nothing is made where there is no journal.
[[nodiscard]] int restore_left(const std::string& state_dir);

}  // namespace swapd::daemon
