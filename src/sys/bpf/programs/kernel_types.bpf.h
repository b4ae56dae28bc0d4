/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
// The kernel's types as far as tracer.bpf.c reads them. Only names matter: where a field is, is found in the running
// kernel's BTF when the programs are loaded.
#pragma once

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
  __u32 status;
  __u32 cpu;  // since 5.16
};

struct rq;

struct cfs_rq {
  struct rq* rq;  // with CONFIG_FAIR_GROUP_SCHED
};

struct rq {
  unsigned int nr_running;
  struct cfs_rq cfs;
};

struct sched_entity {
  __u64 sum_exec_runtime;
  struct cfs_rq* cfs_rq;
};

typedef struct {
  int counter;
} atomic_t;

struct qspinlock {
  atomic_t val;
};

struct raw_spinlock {
  struct qspinlock raw_lock;
};

struct pid_namespace;

struct upid {
  int nr;
  struct pid_namespace* ns;
};

struct pid {
  unsigned int level;
  struct upid numbers[1];
};

struct signal_struct {
  atomic_t live;  // threads that have not ended
};

struct task_struct {
  struct thread_info thread_info;
  unsigned int __state;
  void* stack;
  unsigned int flags;
  int on_cpu;
  unsigned int cpu;  // before 5.16
  struct sched_entity se;
  int prio;
  int pid;
  int tgid;
  struct pid* thread_pid;
  struct task_struct* group_leader;
  struct task_struct* real_parent;
  struct signal_struct* signal;
  int exit_signal;
  __u64 start_time, start_boottime;
  struct raw_spinlock pi_lock;
};

struct pt_regs {
  unsigned long r15;  // comes first
  unsigned long bp, bx, r10, r9, r8, cx, dx, si, di, orig_ax;
};

// 6.2 to 6.14; before and after, its members are variables of their own.
struct pcpu_hot {
  int preempt_count;
  void* hardirq_stack_ptr;
  _Bool hardirq_stack_inuse;
};

struct softnet_data {
  _Bool in_net_rx_action;  // since 6.4
};

struct linux_binprm;

#pragma clang attribute pop
