// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Records for the reader, and when they wake it.
#pragma once

// Set before loading.
volatile const __u64 wake_at_bytes = 0;  // wake the reader when the ring holds this much

// So many records may be reserved by other CPUs between one's own and the look at how much the ring holds.
enum { concurrent_records = 32 };

__u64 lost;  // records for which the ring had no place
__u32 naps;  // the reader comes by itself, and need not be woken

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);
} ring SEC(".maps");

// Waking the reader costs more than the record, so only what is urgent does it, and the record with which the ring gets
// fuller than the reader wanted.
static __always_inline __u64 submit_flags(_Bool urgent) {
  if (*(volatile __u32*)&naps) return BPF_RB_NO_WAKEUP;
  if (urgent) return BPF_RB_FORCE_WAKEUP;
  const __u64 held = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
  return held - wake_at_bytes < concurrent_records * sizeof(struct tracer_record) ? BPF_RB_FORCE_WAKEUP
                                                                                  : BPF_RB_NO_WAKEUP;
}

static __always_inline struct tracer_record* reserve(__u8 kind, __u32 tid, __u64 now) {
  struct tracer_record* record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
  if (!record) {
    __sync_fetch_and_add(&lost, 1);
    return 0;
  }
  record->time = now;
  record->tid = tid;
  record->kind = kind;
  record->flags = 0;
  record->sleep = 0;
  record->call = -1;
  record->other = record->other_tgid = 0;
  record->parent_tgid = 0;
  record->value = 0;
  return record;
}

static __always_inline void no_args(struct tracer_record* record) {
  record->args[0] = record->args[1] = record->args[2] = record->args[3] = record->args[4] = record->args[5] = 0;
}
