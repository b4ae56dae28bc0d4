// How the small processes beside swapd (guard_process.h, attach_main.cpp) set themselves up: system calls only.
#pragma once

#include <chrono>

#include "base/fd.h"

namespace swapd::daemon {

// A session of its own, away from ^C and from the terminal's end; every signal blocked that can be; ahead of others for
// a CPU, the last to go where memory is short, and without the capabilities that swapd does not need. Nothing here may
// fail: with less privilege it is slower, not wrong.
void stand_alone(const char* name);
// What a guard needs besides: room for descriptors, memory that stays, and an alarm that does nothing but end a call.
void settle_guard();
// Again and again, because the first may come just before what it shall end. Zero: no more.
void alarm_every(std::chrono::microseconds period);
// Keeps nothing of swapd's but the two descriptors, at their numbers (guard_fd), and `first`, whose number is returned
// (-1: none). The next one that is made gets `next`.
int keep_only(Fd socket, Fd swapd, Fd first, int next);
// Another swapd: a directory, the program to be started there, and its argv, with a null at the end. Nothing of the
// guard's own is left in it.
[[noreturn]] void start_swapd(char** command, unsigned restart_count);

}  // namespace swapd::daemon
