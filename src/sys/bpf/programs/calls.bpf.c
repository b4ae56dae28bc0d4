// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Tells when a message comes for a thread that user space has named, or when one of them is woken: once each time that
// it is named anew. What a socket's reader is, its last receiving call said. Attached only while such threads compete
// for CPUs, because each message and each wake-up of the machine passes here.
#include "kernel_types.bpf.h"
//
#include <linux/bpf.h>
//
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "calls_layout.h"
#include "ids.bpf.h"

char license_text[] SEC("license") = "Dual BSD/GPL";

struct sock;

enum { only_a_look = 2 };  // MSG_PEEK

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, calls_threads);
  __type(key, __u32);
  __type(value, struct calls_thread);
} threads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_SK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, __u32);  // tid
} readers SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, calls_ring);
} ring SEC(".maps");

static __always_inline void tell(struct calls_thread* thread, __u32 tid) {
  if (!thread->listens) return;
  struct calls_record* record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
  if (!record) return;  // the next message tells
  thread->listens = 0;
  record->time = bpf_ktime_get_ns();
  record->tid = tid;
  record->unused = 0;
  bpf_ringbuf_submit(record, 0);
}

// Since 6.3, and of every way to read a socket; a size below 0 is an error, as of a thread that polls for a message.
SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_receive, struct sock* socket, int size, int flags) {
  const __u32 tid = tid_of(bpf_get_current_task_btf());
  struct calls_thread* thread = tid ? bpf_map_lookup_elem(&threads, &tid) : 0;
  if (!thread) return 0;
  __u32* reader = bpf_sk_storage_get(&readers, socket, 0, BPF_SK_STORAGE_GET_F_CREATE);
  if (reader) *reader = tid;
  if (size > 0 && !(flags & only_a_look)) thread->unread = 0;
  return 0;
}

// Since 6.3; by the sender's thread, or by whichever the soft interrupt borrows.
SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_message, struct sock* socket) {
  __u32* reader = bpf_sk_storage_get(&readers, socket, 0, 0);
  if (!reader) return 0;
  const __u32 tid = *reader;
  struct calls_thread* thread = bpf_map_lookup_elem(&threads, &tid);
  if (!thread) return 0;
  thread->unread = 1;
  ++thread->messages;
  tell(thread, tid);
  return 0;
}

// A thread that blocks when it has waited for long: by a pipe, a futex or a socket.
SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct* task) {
  const __u32 tid = tid_of(task);
  struct calls_thread* thread = tid ? bpf_map_lookup_elem(&threads, &tid) : 0;
  if (thread) tell(thread, tid);
  return 0;
}
