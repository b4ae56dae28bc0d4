// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Programs that do nothing, where the tracer has its own: what the kernel says that one takes is what it costs to
// measure a program there, which into cold caches (an exec) is several times what it is into warm ones (a switch).
#include <linux/types.h>
//
#include <linux/bpf.h>
//
#include <bpf/bpf_helpers.h>

char license_text[] SEC("license") = "Dual BSD/GPL";

SEC("tp_btf/sched_switch")
int empty_switch(void* context) { return 0; }

SEC("tp_btf/sched_waking")
int empty_waking(void* context) { return 0; }

SEC("tp_btf/softirq_entry")
int empty_softirq(void* context) { return 0; }

SEC("tp_btf/sched_process_fork")
int empty_fork(void* context) { return 0; }

SEC("tp_btf/sched_process_exec")
int empty_exec(void* context) { return 0; }

SEC("tp_btf/sched_process_exit")
int empty_exit(void* context) { return 0; }
