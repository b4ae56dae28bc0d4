// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Counts that the program at each CPU's clock (profile.bpf.c) keeps of a thread, for cpu_profile.cpp. C and C++.
#pragma once

#ifdef __BPF__
typedef unsigned int profile_u32;
typedef unsigned long long profile_u64;
#else
#include <stdint.h>
typedef uint32_t profile_u32;
typedef uint64_t profile_u64;
#endif

// NOLINTBEGIN(readability-identifier-naming): C names, for both sides
enum { profile_threads = 4096, profile_share_one = 65536, profile_states = 4, profile_places = 8, profile_followed = 8 };

struct profile_thread {
  profile_u64 samples;      // how often it had the CPU when the clock struck
  profile_u64 in_user;      // … and was in its own code
  profile_u64 spins;        // … beside a PAUSE, or in a state that it was in before
  profile_u64 yields;       // … or was in sched_yield(2)
  profile_u64 asks;         // … or in a call that asks for messages, or waits for them
  profile_u64 looks;        // at what it is due: while it, or a thread beside which it is followed, had the CPU, and no
                            // real-time thread, which would keep waiting who otherwise comes and goes
  profile_u64 inner;        // … the sum of what it was due of its group's CPU time, profile_share_one being all
  profile_u64 upper;        // … the sum of what its groups were due of the CPU, profile_share_one being all
  profile_u64 rival_looks;     // at whether others are queued where it is, while it is followed, whatever has the CPU
  profile_u64 without_rivals;  // … none, or next to none by their weight
  profile_u64 group;        // its run queue, as a number that names it …
  profile_u64 whole_group;  // … and the group whose it is; 0: the kernel has no groups
  profile_u64 cpu_ns;       // CPU time in all, as of the last look
  profile_u64 blocks;       // voluntary context switches in all
  profile_u64 start_boottime;  // ns since boot at which it started
  profile_u64 states[profile_states];
  profile_u64 places[profile_places];  // of its code, where it was at its last samples there, by turns
  profile_u32 tgid;
  profile_u32 cpu;
  profile_u32 weight;  // that its nice value gives it
  profile_u32 next_state;
};
// NOLINTEND(readability-identifier-naming)
