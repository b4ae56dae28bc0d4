// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Waits that swapd need not know of, because the thread that is about to end them has a CPU (docs/bpf.md, silent
// waits).
#pragma once

enum {
  call_wait4 = 61,  // x86-64
  call_waitid = 247,
  call_nanosleep = 35,
  call_clock_nanosleep = 230,
  wait_for_all = 0,   // P_ALL
  wait_for_pid = 1,   // P_PID
  signal_child = 17,  // SIGCHLD: those that such a wait can reap
  first_nice_prio = 100,
};

// A wait that the end of that child can end. A target's own pid namespace may name it otherwise: then it is told.
static __always_inline _Bool waits_for_child(const struct tracer_slot* slot, __u32 child) {
  if (slot->block_flags) return 0;  // 32-bit calls have other numbers
  if (slot->call == call_wait4) return (__s32)slot->args[0] == -1 || (__u32)slot->args[0] == child;
  if (slot->call == call_waitid)
    return slot->args[0] == wait_for_all || (slot->args[0] == wait_for_pid && (__u32)slot->args[1] == child);
  return 0;
}

static __always_inline _Bool is_often(const struct tracer_slot* slot, int kind) {
  const __u64 arg = slot->often_arg[kind];
  return slot->call == slot->often_call[kind] && (arg == tracer_any_arg || arg == slot->args[0]);
}

// One of those waits of a patient thread that come often.
static __always_inline _Bool waits_patiently(const struct tracer_slot* slot, __u32 control) {
  if (!(control & tracer_patient) || slot->block_flags) return 0;
  return (control & tracer_any_often) || is_often(slot, 0) || is_often(slot, 1);
}

// Such a wait is a usual one, too, but for one that only time ends.
static __always_inline _Bool is_usual(const struct tracer_slot* slot, __u32 control) {
  if (slot->patiently)
    return !(control & tracer_rested) && slot->call != call_nanosleep && slot->call != call_clock_nanosleep;
  return slot->call == slot->expected_call && slot->args[0] == slot->expected_arg;
}

// The thread that is about to end this wait: the child made last, or the expected thread if this is the usual wait. 0:
// not known.
static __always_inline __u32 expected_by(const struct tracer_slot* slot, __u32 control) {
  const __u32 newborn = *(volatile __u32*)&slot->newborn;
  if (newborn && waits_for_child(slot, newborn)) return newborn;
  const __u32 expected = *(volatile __u32*)&slot->expected;
  return is_usual(slot, control) ? expected : 0;
}

// Must a newborn share its CPU from its first moment on? Its parent lends a nice value, which divides the CPU, and
// others want this one. What a real-time parent lends is as good once the newborn has lost its CPU.
static __always_inline _Bool divides_cpu(struct task_struct* parent) {
  if (parent->prio < first_nice_prio) return 0;
  struct cfs_rq* cfs = parent->se.cfs_rq;
  return !bpf_core_field_exists(cfs->rq) || cfs->rq->nr_running > 1;
}

// If the thread that is about to end this wait (provider: its slot) has a CPU, or gets this one now, the wait is
// silent: it is told only if that thread leaves its CPU before (leave()). Returns that thread, or 0.
static __always_inline __u32 needs_nobody(struct tracer_slot* slot, __u32 expected, struct tracer_slot* provider,
                                          struct task_struct* task, __u32 tid, __u32 next) {
  if (!provider || !(*(volatile __u32*)&provider->control & tracer_awaitable)) return 0;
  // A child that was let go counts here too, though its tid is another's by now.
  if (expected == *(volatile __u32*)&slot->newborn && (provider->parent != tid || divides_cpu(task))) return 0;
  // One thread may wait for it in silence, the others are told of.
  const __u64 before = expected == next ? 0 : presence_on_cpu;
  const __u64 waited_for = before | (__u64)tid << presence_waiter_shift;
  return __sync_val_compare_and_swap(presence_of(provider), before, waited_for) == before ? expected : 0;
}

// A thread is watched that is important, or that an important one may be waiting for.
static __always_inline _Bool is_watched(__u32 tid) {
  struct tracer_slot* slot = tid && is_managed(tid) ? slot_of(tid) : 0;
  return slot && (*(volatile __u32*)&slot->control & tracer_watched);
}

// Does the thread that is about to end this wait want a CPU already, which it has lost, while this one goes to a thread
// that matters less? Then a wait that comes often is told all the same: it begins as an inversion. (A thread that has
// been woken a moment ago mostly gets its CPU in the next one.)
static __always_inline _Bool begins_inverted(const struct tracer_slot* provider, struct task_struct* task,
                                             struct task_struct* next_task, __u32 next) {
  return provider && *(volatile __u32*)&provider->phase == tracer_running && !*(volatile __u32*)&provider->on_cpu &&
         next_task->pid && next_task->prio > task->prio && !is_watched(next);
}

// Was it ended by the one for whom it was silent? provider: that one's slot.
static __always_inline _Bool end_silence_by(struct tracer_slot* slot, __u32 tid, __u32 expected,
                                            struct tracer_slot* provider) {
  slot->silent = 0;
  if (provider) __sync_val_compare_and_swap(&provider->awaited_by, tid, 0);
  return slot->waker == (__s32)expected || slot->patiently;
}

// Is a thread that leaves its CPU to `next` to be told of to the one that waits for it in silence? Where such waits
// come often, only if that is an inversion: the thread goes on wanting a CPU, and what runs instead matters less than
// the waiter.
static __always_inline _Bool tells_waiter(__u32 waiter, _Bool blocks, struct task_struct* next, __u32 next_tid) {
  struct tracer_slot* slot = waiter ? slot_of(waiter) : 0;
  if (!slot || !*(volatile __u32*)&slot->patiently) return waiter != 0;
  return !blocks && next->prio > *(volatile __s32*)&slot->prio && !is_watched(next_tid);
}

static __always_inline struct tracer_slot* slot_of_expected(__u32 expected) {
  return expected == tracer_by_any ? 0 : slot_of(expected);
}

static __always_inline _Bool end_silence(struct tracer_slot* slot, __u32 tid, __u32 expected) {
  return end_silence_by(slot, tid, expected, slot_of_expected(expected));
}

// A thread that waits in silence for the end of this process need not be told of it: the wakeup follows when the
// process's memory and files are given back. (No boost would help in that.)
static __always_inline _Bool ends_by_exit(__u32 waiter, __u32 tid) {
  struct tracer_slot* slot = slot_of(waiter);
  return slot && *(volatile __u32*)&slot->silent == tid && waits_for_child(slot, tid);
}
