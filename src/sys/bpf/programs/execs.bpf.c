// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Every program that starts on the machine, with what tells which it is: one that ends at once is seen too. And, where
// it is asked for, each process that gets another name, or another place among the cgroups, after its start.
#include "kernel_types.bpf.h"
//
#include <linux/bpf.h>
//
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "execs_layout.h"
#include "ids.bpf.h"

char license_text[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct {
  unsigned long arg_start, arg_end;
};
typedef struct {
  __u32 val;
} kuid_t;
struct cred {
  kuid_t uid;
};
struct task_struct___program {
  struct mm_struct* mm;
  const struct cred* cred;
};
struct linux_binprm___program {
  const char* filename;
};
struct cgroup;
struct task_struct___execs {
  unsigned in_execve : 1;
};

#pragma clang attribute pop

__u64 lost;  // programs for which the ring had no place

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);
} ring SEC(".maps");

// After the new program has its memory, its name and its credentials, and before its first instruction.
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_program, struct task_struct* task, int former, struct linux_binprm* binary) {
  const __u32 tgid = tgid_of(task);
  if (!tgid) return 0;
  struct execs_record* record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
  if (!record) {
    __sync_fetch_and_add(&lost, 1);
    return 0;
  }
  const struct task_struct___program* program = (void*)task;
  record->start_boottime = task->start_boottime;
  record->tgid = tgid;
  record->uid = BPF_CORE_READ(program, cred, uid.val);
  record->what = execs_started;
  bpf_get_current_comm(record->comm, sizeof record->comm);
  const char* path = BPF_CORE_READ((struct linux_binprm___program*)binary, filename);
  if (bpf_probe_read_kernel_str(record->path, sizeof record->path, path) < 0) record->path[0] = 0;
  // Just written there by execve(2), so in memory; else it is empty.
  const __u64 start = BPF_CORE_READ(program, mm, arg_start);
  __u64 size = BPF_CORE_READ(program, mm, arg_end) - start;
  if (size > execs_args - 1) size = execs_args - 1;
  size &= execs_args - 1;
  record->args_size = bpf_probe_read_user(record->args, size, (void*)start) < 0 ? 0 : size;
  bpf_ringbuf_submit(record, 0);
  return 0;
}

static __always_inline void tell_change(struct task_struct* task) {
  const __u32 tgid = tgid_of(task);
  if (!tgid) return;
  struct execs_record* record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
  if (!record) {
    __sync_fetch_and_add(&lost, 1);
    return;
  }
  record->what = execs_changed;
  record->tgid = tgid;
  record->args_size = 0;
  bpf_ringbuf_submit(record, 0);
}

// prctl(PR_SET_NAME), or a write to comm. Only the main thread's name is the process's; and execve(2) names it as well,
// of which on_program tells.
SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct* task, const char* comm) {
  if (task->pid != task->tgid || !((struct task_struct___program*)task)->mm) return 0;
  const struct task_struct___execs* execs = (void*)task;
  if (bpf_core_field_exists(execs->in_execve) && BPF_CORE_READ_BITFIELD_PROBED(execs, in_execve)) return 0;
  tell_change(task);
  return 0;
}

// The leader of what has been moved, when it is there.
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_move, struct cgroup* to, const char* path, struct task_struct* task, _Bool whole) {
  tell_change(task);
  return 0;
}
