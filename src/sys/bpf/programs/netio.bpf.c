// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Counts what threads move over IPv4 and IPv6, whatever call they do it by: the kernel keeps no such count. Only of
// threads that user space has put into the map.
#include "kernel_types.bpf.h"
//
#include <linux/bpf.h>
//
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "ids.bpf.h"
#include "netio_layout.h"

char license_text[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
  unsigned short skc_family;
};
struct sock {
  struct sock_common __sk_common;
};

#pragma clang attribute pop

enum {
  family_inet = 2,  // AF_INET
  family_inet6 = 10,
  only_a_look = 2,  // MSG_PEEK
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, netio_threads);
  __type(key, __u32);
  __type(value, struct netio_counters);
} threads SEC(".maps");

static __always_inline struct netio_counters* counters_of(struct sock* socket, int size) {
  if (size <= 0) return 0;
  const unsigned short family = socket->__sk_common.skc_family;
  if (family != family_inet && family != family_inet6) return 0;
  const __u32 tid = tid_of(bpf_get_current_task_btf());
  return tid ? bpf_map_lookup_elem(&threads, &tid) : 0;
}

// swapd has not asked for a thread that has just been born: its id was another's.
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_birth, struct task_struct* parent, struct task_struct* child) {
  const __u32 tid = tid_of(child);
  if (tid && bpf_map_lookup_elem(&threads, &tid)) bpf_map_delete_elem(&threads, &tid);
  return 0;
}

// Both since 6.3, and of every way to a socket: write(2), sendfile(2), splice(2) and the like too.
SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock* socket, int size, int flags) {
  struct netio_counters* counters = counters_of(socket, size);
  if (counters) __sync_fetch_and_add(&counters->sent, size);
  return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_receive, struct sock* socket, int size, int flags) {
  if (flags & only_a_look) return 0;
  struct netio_counters* counters = counters_of(socket, size);
  if (counters) __sync_fetch_and_add(&counters->received, size);
  return 0;
}
