// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Learns what the other programs have to know of swapd and of the kernel, and can be told only as they are loaded: it
// is then part of their code, and no memory that each event would have to read. Run once by swapd.
#include "kernel_types.bpf.h"
//
#include <linux/bpf.h>
//
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "ids.bpf.h"

char license_text[] SEC("license") = "Dual BSD/GPL";

__u64 own_namespace_at;
__u32 own_namespace_level;
__u64 own_regs_offset;

SEC("syscall")
int learn(void* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  // Every thread has its registers at the same place of its stack. The verifier of 6.1 refuses to reckon with what it
  // knows for an address; what has been stored, or read by a helper, is a number to it.
  *(volatile __u64*)&own_regs_offset = (__u64)bpf_task_pt_regs(task);
  *(volatile __u64*)&own_regs_offset -= (__u64)task->stack;
  struct pid* pid = BPF_CORE_READ(task, thread_pid);
  if (!pid) return 0;
  const __u32 level = BPF_CORE_READ(pid, level);
  own_namespace_at = (__u64)BPF_CORE_READ(upid_at(pid, level), ns);
  own_namespace_level = level;
  return 0;
}
