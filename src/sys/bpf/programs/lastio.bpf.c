// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Tells what chosen threads had read and written in all when they ended: /proc says it no more. Only of threads that
// user space has put into the map, once.
#include "kernel_types.bpf.h"
//
#include <linux/bpf.h>
//
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "ids.bpf.h"
#include "lastio_layout.h"

char license_text[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_io_accounting {  // CONFIG_TASK_XACCT, CONFIG_TASK_IO_ACCOUNTING
  __u64 rchar, wchar, syscr, syscw;
  __u64 read_bytes, write_bytes;
};
struct task_struct___io {
  struct task_io_accounting ioac;
};

#pragma clang attribute pop

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, lastio_threads);
  __type(key, __u32);
  __type(value, struct lastio_asked);
} threads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 17);
} ring SEC(".maps");

// The end of a thread that was asked for too late, or whose id another thread took over as it execs, is not seen.
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_birth, struct task_struct* parent, struct task_struct* child) {
  const __u32 tid = tid_of(child);
  if (tid && bpf_map_lookup_elem(&threads, &tid)) bpf_map_delete_elem(&threads, &tid);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_end, struct task_struct* task) {
  const __u32 tid = tid_of(task);
  const struct lastio_asked* asked = tid ? bpf_map_lookup_elem(&threads, &tid) : 0;
  if (!asked) return 0;
  struct lastio_record* record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
  if (record) {
    const struct task_struct___io* moved = (void*)task;
    record->asked = *asked;
    record->read_chars = moved->ioac.rchar;
    record->written_chars = moved->ioac.wchar;
    record->calls = moved->ioac.syscr + moved->ioac.syscw;
    record->read_bytes = moved->ioac.read_bytes;
    record->written_bytes = moved->ioac.write_bytes;
    record->tid = tid;
    record->unused = 0;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);  // it is read when swapd wants to know
  }
  bpf_map_delete_elem(&threads, &tid);
  return 0;
}
