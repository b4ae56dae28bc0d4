// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Layout shared by the kernel programs (tracer.bpf.c) and bpf_tracer.cpp: the slot of a managed thread in mapped
// memory, and the records of the ring buffer. C and C++, fixed sizes, no padding.
#pragma once

#ifdef __BPF__
typedef signed int tracer_s32;
typedef unsigned short tracer_u16;
typedef unsigned int tracer_u32;
typedef unsigned long long tracer_u64;
#else
#include <stdint.h>
typedef int32_t tracer_s32;
typedef uint16_t tracer_u16;
typedef uint32_t tracer_u32;
typedef uint64_t tracer_u64;
#endif

// NOLINTBEGIN(readability-identifier-naming): C names, for both sides
enum {
  tracer_max_tids = 4194304,  // PID_MAX_LIMIT of a 64-bit kernel
  tracer_probes = 32,         // places in which the slot of a thread may be, from tid mod slots on
  tracer_code_parts = 4,
};

// tracer_slot.phase
enum {
  tracer_unknown = 0,  // managed by user space, nothing seen since
  tracer_running = 1,  // has had a CPU since its last wait
  tracer_blocked = 2,
  tracer_woken = 3,  // and has had no CPU since
};

// tracer_slot.control: what user space wants of the thread
enum {
  tracer_watched = 1,
  tracer_urgent = 2,
  tracer_timed = 4,       // when it got its CPU is noted
  tracer_unseen = 8,      // set by a fork: user space does not know of it yet, nor need it if the thread ends first
  tracer_awaitable = 16,  // others may wait for it in silence
  tracer_patient = 32,    // of waits that come often neither the begin is told nor the end, but an inversion is
  tracer_rested = 64,     // … and not that either, for the present
  tracer_any_often = 128  // all its waits come often
};

enum { tracer_often_kinds = 2 };

// tracer_slot.silent, besides the thread that is expected to end the wait
enum { tracer_by_any = 0xffffffff };  // whichever thread ends it: such waits come often

#define tracer_any_arg (~(tracer_u64)0)

// tracer_slot.block_flags, wake_flags, tracer_record.flags
enum {
  tracer_compat = 1,         // the call is one of the 32-bit table, so are the arguments
  tracer_kernel = 2,         // the waker is a kernel thread: no call
  tracer_own_softirq = 4,    // the waker's call ran the soft interrupt that woke
  tracer_interrupt = 8,      // woken in interrupt context: no waker
  tracer_late = 16,          // of a wake: it was noticed when the thread got a CPU
  tracer_inverted = 16,      // of a wait that comes often: it is told because it begins as an inversion
  tracer_without_slot = 32,  // a child that is not managed, because no slot was free
  tracer_silent = 64,        // the wait that has ended had given no record
  tracer_doubtful = 128      // a wake may have been under way when it was told
};

// Four cache lines, by their writers: hardly ever written; the thread as it blocks (under block_seq); the thread as it
// gets and leaves its CPU; its wakers (under wake_seq). So a wakeup from another CPU, and the turn on a CPU that comes
// of it, wait for no line of that CPU's. Other threads write `phase` and `silent` only of watched threads, and
// `awaited_by` only of awaitable ones. The sequences are odd while something is being written.
struct tracer_slot {
  tracer_u32 tid;  // 0: free
  tracer_u32 control;
  tracer_u32 expected;  // the thread that it expects to end its usual wait; written by user space; 0: none
  tracer_s32 expected_call;
  tracer_u64 expected_arg;  // the first argument
  tracer_u32 newborn;       // the process it has made last, while that lives
  tracer_u32 parent;        // the thread that has made this process
  // The waits that come often; written by user space.
  tracer_u64 often_arg[tracer_often_kinds];  // the first argument; tracer_any_arg: whichever
  tracer_s32 often_call[tracer_often_kinds];
  tracer_u64 unused;

  tracer_u32 block_seq;
  tracer_s32 call;  // -1: in no system call (a page fault, a kernel's own work on return)
  tracer_u64 args[6];
  tracer_u64 blocked_at;  // exact where it was told; else when the reader looked at the clock last, or a little later

  tracer_u32 on_cpu;      // these two are one word to the programs
  tracer_u32 awaited_by;  // a thread that has begun a silent wait for this one
  tracer_u64 cpu_ns;      // CPU time in all, when it last left its CPU
  tracer_u64 on_since;    // of one that is timed; 0: it has no CPU, or was not timed when it got it
  tracer_u32 phase;       // of one that is not watched, tracer_blocked until it gets a CPU
  tracer_u32 silent;      // the present wait gave no record, because this thread has a CPU and will end it (or
                          // tracer_by_any); 0: it did
  tracer_u32 wakes;       // how many it has made
  tracer_u16 sleep;       // the bits of TASK_REPORT
  unsigned char block_flags;
  unsigned char unused2;
  tracer_u32 waits;      // that have begun, of those that come often
  tracer_s32 prio;       // as it began the last of them: the kernel's, lower is more important
  tracer_u32 patiently;  // the present wait is one of them
  tracer_u32 unused3[3];

  tracer_u32 wake_seq;
  tracer_s32 waker;  // 0: none
  tracer_s32 waker_tgid;
  tracer_s32 waker_call;
  tracer_u64 waker_args[2];
  tracer_u64 woken_at;    // the last wake that was told; written after the rest
  tracer_u32 wake_order;  // of its last wake, by the waker's count; 0: the waker is not managed
  unsigned char wake_flags;
  unsigned char unused4[3];
  tracer_u64 unused5[2];
};

// The thread that runs on a CPU, since its last switch.
struct tracer_cpu {
  tracer_s32 tid;   // 0: one that is not managed
  tracer_s32 prio;  // the kernel's; 0: it idles, or there was no switch yet
};

// tracer_record.kind
enum {
  tracer_record_blocked = 1,
  tracer_record_woken = 2,
  tracer_record_fork = 3,
  tracer_record_exec = 4,
  tracer_record_exit = 5,
  tracer_record_left = 6,  // left its CPU while a thread waited for it in silence
};

struct tracer_record {
  tracer_u64 time;  // blocked, woken, left
  tracer_s32 tid;
  unsigned char kind;
  unsigned char flags;
  tracer_u16 sleep;        // blocked
  tracer_s32 call;         // blocked; woken: the waker's
  tracer_s32 other;        // woken: the waker; fork: the parent thread; exec: the former tid; left: who waits
  tracer_s32 other_tgid;   // woken: the waker's; fork: the child's
  tracer_s32 parent_tgid;  // fork
  tracer_u64 args[6];      // blocked; woken: two, the waker's, and how many wakes the thread itself has made
  tracer_u64 value;  // blocked, exit: CPU time; woken: when it had blocked; fork: ns since boot at which it started
};
// NOLINTEND(readability-identifier-naming)
