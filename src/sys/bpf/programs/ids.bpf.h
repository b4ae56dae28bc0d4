// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Thread ids as swapd's pid namespace has them. A thread that is not in it has the id 0, which is never managed.
#pragma once

// Set before loading: swapd's own namespace and its depth; 0: the initial one, where the kernel's ids are the right
// ones.
volatile const __u64 namespace_at = 0;
volatile const __u32 namespace_level = 0;

static __always_inline struct upid* upid_at(struct pid* pid, __u32 level) {
  return (void*)((__u64)pid + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid));
}

static __attribute__((noinline)) __u32 id_in_namespace(struct pid* pid) {
  const __u32 level = namespace_level;
  if (!pid || pid->level < level) return 0;
  struct upid* id = upid_at(pid, level);
  return (__u64)BPF_CORE_READ(id, ns) == namespace_at ? BPF_CORE_READ(id, nr) : 0;
}

static __always_inline __u32 tid_of(struct task_struct* task) {
  return namespace_level ? id_in_namespace(task->thread_pid) : (__u32)task->pid;
}

static __always_inline __u32 tgid_of(struct task_struct* task) {
  return namespace_level ? id_in_namespace(task->group_leader->thread_pid) : (__u32)task->tgid;
}
