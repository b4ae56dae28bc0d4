// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The managed set in the kernel: a bitmap that every switch and wake asks, and the slots of those that are in it.
#pragma once

volatile const __u32 slot_mask = 16383;  // set before loading

// Is a tid managed: one bit. Every switch and wake of the machine asks. Measured on top of an empty program, for a tid
// that is not managed: bit 5 ns, task storage 27, hash map 41; with what leads to its slot where it is: 5, 27, 58.
__u64 managed[tracer_max_tids / 64];
__u64 without_slot;  // children left out because no slot was free
__u32 followed;      // switches and wakes are: what a slot says of its thread remains true

// A slot is found by probing from tid mod slots on: tids are handed out in sequence, so the first look mostly hits, and
// the line that is looked at is the one that will be written.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, struct tracer_slot);
} slots SEC(".maps");

static __always_inline _Bool is_managed(__u32 tid) {
  return managed[(tid / 64) % (tracer_max_tids / 64)] >> (tid % 64) & 1;
}

static __always_inline void set_managed(__u32 tid, _Bool on) {
  __u64* word = &managed[(tid / 64) % (tracer_max_tids / 64)];
  if (on)
    __sync_fetch_and_or(word, 1ULL << (tid % 64));
  else
    __sync_fetch_and_and(word, ~(1ULL << (tid % 64)));
}

static __always_inline struct tracer_slot* slot_at(__u32 index) { return bpf_map_lookup_elem(&slots, &index); }

static __attribute__((noinline)) struct tracer_slot* probe_slot(__u32 tid) {
  for (__u32 i = 1; i < tracer_probes; ++i) {
    struct tracer_slot* slot = slot_at((tid + i) & slot_mask);
    if (slot && slot->tid == tid) return slot;
  }
  return 0;
}

static __always_inline struct tracer_slot* slot_of(__u32 tid) {
  struct tracer_slot* slot = slot_at(tid & slot_mask);
  return slot && slot->tid == tid ? slot : probe_slot(tid);
}

static __attribute__((noinline)) struct tracer_slot* claim_slot(__u32 tid) {
  for (__u32 i = 0; i < tracer_probes; ++i) {
    struct tracer_slot* slot = slot_at((tid + i) & slot_mask);
    if (slot && slot->tid == 0 && __sync_val_compare_and_swap(&slot->tid, 0, tid) == 0) return slot;
  }
  return 0;
}

// Whether it has a CPU, and who has begun to wait for it in silence: changed at once, so that who leaves a CPU and who
// begins to wait agree on which came first.
enum { presence_on_cpu = 1, presence_waiter_shift = 32 };

static __always_inline __u64* presence_of(struct tracer_slot* slot) { return (__u64*)&slot->on_cpu; }

// The thread leaves its CPU, and its silent waiter is taken off. Returns that waiter, or 0.
static __always_inline __u32 take_presence(struct tracer_slot* slot) {
  // A locked change waits for all that is still to be written: not without need.
  if (!(*(volatile __u32*)&slot->control & tracer_awaitable)) {
    *(volatile __u32*)&slot->on_cpu = 0;
    return 0;
  }
  return __sync_lock_test_and_set(presence_of(slot), 0) >> presence_waiter_shift;
}

static __always_inline void clear_slot(struct tracer_slot* slot) {
  slot->control = 0;
  slot->phase = tracer_unknown;
  slot->call = -1;
  slot->blocked_at = slot->woken_at = slot->cpu_ns = slot->on_since = 0;
  slot->waker = slot->waker_tgid = 0;
  slot->waker_call = -1;
  slot->sleep = 0;
  slot->block_flags = slot->wake_flags = 0;
  slot->expected = slot->awaited_by = slot->on_cpu = slot->silent = 0;
  slot->wakes = slot->wake_order = slot->newborn = slot->parent = slot->waits = slot->patiently = 0;
}

// The slot is cleared when it is taken again.
static __always_inline void free_slot(struct tracer_slot* slot) {
  slot->control = 0;
  barrier();
  *(volatile __u32*)&slot->tid = 0;
}

// For a thread that has a CPU or is about to get its first one.
static __always_inline struct tracer_slot* new_slot(__u32 tid, __u32 control) {
  // A bit without a thread is left where user space took a thread in that was just ending.
  struct tracer_slot* slot = is_managed(tid) ? slot_of(tid) : 0;
  if (!slot) slot = claim_slot(tid);
  if (!slot) {
    __sync_fetch_and_add(&without_slot, 1);
    return 0;
  }
  clear_slot(slot);
  slot->control = control;
  slot->phase = *(volatile __u32*)&followed ? tracer_running : tracer_unknown;
  set_managed(tid, 1);
  return slot;
}
