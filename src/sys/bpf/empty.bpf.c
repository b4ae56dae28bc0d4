// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Does nothing at each switch: what the kernel says that it takes is what it costs to measure a program.
#include <linux/types.h>
//
#include <linux/bpf.h>
//
#include <bpf/bpf_helpers.h>

char license_text[] SEC("license") = "Dual BSD/GPL";

SEC("tp_btf/sched_switch")
int empty(void* context) { return 0; }
