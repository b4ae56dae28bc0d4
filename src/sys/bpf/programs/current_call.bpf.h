// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The call that a thread is in, read from the registers that it saved as it entered the kernel (after waker.bpf.h).
#pragma once

enum {
  flag_kernel_thread = 0x200000,  // PF_KTHREAD
  flag_io_worker = 0x10,          // PF_IO_WORKER: threads of io_uring
  flag_user_worker = 0x4000,      // PF_USER_WORKER, since 6.4
};

// Set before loading.
volatile const __u64 regs_offset = 0;  // of a thread's saved registers in its stack

static __always_inline struct pt_regs* regs_of(struct task_struct* task) {
  if (!can_cast) return (struct pt_regs*)bpf_task_pt_regs(task);
  return bpf_rdonly_cast((void*)((__u64)task->stack + regs_offset), bpf_core_type_id_kernel(struct pt_regs));
}

// Threads without a user's registers make no calls.
static __always_inline _Bool has_calls(struct task_struct* task) {
  return !(task->flags & (flag_kernel_thread | flag_io_worker | flag_user_worker));
}

// The call that the thread is in, with its arguments. compat: it is of the 32-bit table. (One branch for all: a choice
// for each argument would be a branch for each.)
static __always_inline void save_syscall(struct tracer_slot* slot, const struct pt_regs* regs, _Bool compat) {
  slot->call = regs->orig_ax;
  if (compat) {
    slot->args[0] = (__u32)regs->bx;
    slot->args[1] = (__u32)regs->cx;
    slot->args[2] = (__u32)regs->dx;
    slot->args[3] = (__u32)regs->si;
    slot->args[4] = (__u32)regs->di;
    slot->args[5] = (__u32)regs->bp;
  } else {
    slot->args[0] = regs->di;
    slot->args[1] = regs->si;
    slot->args[2] = regs->dx;
    slot->args[3] = regs->r10;
    slot->args[4] = regs->r8;
    slot->args[5] = regs->r9;
  }
}
