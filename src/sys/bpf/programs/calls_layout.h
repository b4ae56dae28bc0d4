// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A thread as calls.bpf.c keeps it, and its records, for message_calls.cpp. C and C++.
#pragma once

#ifdef __BPF__
typedef unsigned int calls_u32;
typedef unsigned long long calls_u64;
#else
#include <stdint.h>
typedef uint32_t calls_u32;
typedef uint64_t calls_u64;
#endif

// NOLINTBEGIN(readability-identifier-naming): C names, for both sides
enum { calls_threads = 1024, calls_ring = 4096 };

struct calls_thread {
  calls_u32 listens;   // it is to be told of its next message
  calls_u32 unread;    // one has come since it received last
  calls_u32 messages;  // that have come in all
};

struct calls_record {
  calls_u64 time;  // CLOCK_MONOTONIC, ns
  calls_u32 tid;
  calls_u32 unused;
};
// NOLINTEND(readability-identifier-naming)
