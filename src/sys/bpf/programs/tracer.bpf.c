// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Notes who waits and who wakes, as the kernel sees it (docs/bpf.md): every managed thread has a slot in mapped memory,
// which is written at each block and wake; the threads that user space watches give a record in the ring besides.
//
// x86-64. Nothing here may sleep, and sched_switch and sched_waking run under scheduler locks.
#include "kernel_types.bpf.h"
//
#include <linux/bpf.h>
//
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "ids.bpf.h"
#include "layout.h"
#include "managed.bpf.h"
#include "ring.bpf.h"
#include "silence.bpf.h"
#include "waker.bpf.h"
//
#include "current_call.bpf.h"

char license_text[] SEC("license") = "Dual BSD/GPL";  // some helpers are for GPL-compatible programs only

enum {
  task_report_bits = 0x7f,        // sched.h: interruptible, uninterruptible, stopped, traced, dead …
  task_waking = 0x200,            // TASK_WAKING, since 4.14
  status_compat = 2,              // TS_COMPAT: the present call is of the 32-bit table
  no_time = 0,                    // when the reader comes to know of it will do: a look at the clock, into cold caches,
                                  // takes longer than all else there
};

__u64 recent;  // what the reader saw on the clock last

// A sequence that two wakers happen to write at once (one of them the thread itself) is right again after the next.
static __always_inline void begin_write(__u32* sequence) {
  *(volatile __u32*)sequence |= 1;
  barrier();
}

static __always_inline void end_write(__u32* sequence) {
  barrier();
  *(volatile __u32*)sequence = (*sequence | 1) + 1;
}

// ---- blocks ----

// Did a waker come first? sched_waking runs before the waker gets at the run queue, so a thread that is just leaving
// its CPU may have been woken already, which shows as soon as the waker has marked it. Before that the waker holds
// pi_lock, which says little, because sched_setattr(2) takes it too: such a wait is told as doubtful.
static __always_inline _Bool wake_under_way(struct task_struct* task) { return task->__state & task_waking; }

// One look at the clock for each event whose time counts: it takes most of the event's own.
static __always_inline __u64 clock(__u64* now) {
  if (!*now) *now = bpf_ktime_get_ns();
  return *now;
}

static __always_inline void tell_block(struct tracer_record* record, struct tracer_slot* slot, __u32 control,
                                       __u8 more_flags) {
  record->flags = slot->block_flags | more_flags;
  record->sleep = slot->sleep;
  record->call = slot->call;
  __builtin_memcpy(record->args, slot->args, sizeof record->args);
  record->value = slot->cpu_ns;
  bpf_ringbuf_submit(record, submit_flags(control & tracer_urgent));
}

// Time of a wait that swapd is not told of; still tells one wait from the next.
static __always_inline __u64 about_now(const struct tracer_slot* slot) {
  const __u64 about = *(volatile __u64*)&recent;
  return about > slot->blocked_at ? about : slot->blocked_at + 1;
}

// Nothing here waits for what other CPUs write, nor for this one to have written. User space, which sets `watched` and
// then reads the slot, may do so while this is still on its way: it looks once more when that must have arrived.
static __always_inline void block_unwatched(struct tracer_slot* slot, __u32 tid) {
  slot->blocked_at = about_now(slot);
  slot->silent = 0;
  barrier();
  *(volatile __u32*)&slot->phase = tracer_blocked;
  end_write(&slot->block_seq);
  const __u32 control = *(volatile __u32*)&slot->control;
  if (!(control & tracer_watched)) return;
  struct tracer_record* record = reserve(tracer_record_blocked, tid, slot->blocked_at);
  if (record) tell_block(record, slot, control, tracer_doubtful);  // it may have been woken already
}

// It is blocked from now on, unless a waker came first: then the wait is over, which is returned.
static __always_inline _Bool settle_block(struct tracer_slot* slot, struct task_struct* task) {
  const __u32 before = __sync_lock_test_and_set(&slot->phase, tracer_blocked);
  const _Bool over = before == tracer_woken && wake_under_way(task);
  if (over) slot->phase = tracer_woken;
  if (before == tracer_woken && !over && task->pi_lock.raw_lock.val.counter) slot->block_flags |= tracer_doubtful;
  end_write(&slot->block_seq);
  return over;
}

// told: the wait is reported in any case.
static __always_inline void block(struct tracer_slot* slot, struct task_struct* task, __u32 tid,
                                  struct task_struct* next_task, __u32 next, _Bool told, __u64* now) {
  begin_write(&slot->block_seq);
  slot->sleep = task->__state & task_report_bits;
  struct pt_regs* regs = regs_of(task);
  if (!has_calls(task)) {
    slot->call = -1;
    slot->block_flags = tracer_kernel;
  } else {
    const _Bool compat = task->thread_info.status & status_compat;
    slot->block_flags = compat ? tracer_compat : 0;
    save_syscall(slot, regs, compat);
  }
  const __u32 control = *(volatile __u32*)&slot->control;
  if (!(control & tracer_watched)) return block_unwatched(slot, tid);
  const _Bool patiently = waits_patiently(slot, control);
  slot->patiently = patiently;
  if (patiently) {
    ++slot->waits;
    slot->prio = task->prio;
  }
  const __u32 expected = told ? 0 : expected_by(slot, control);
  struct tracer_slot* provider = expected ? slot_of(expected) : 0;
  __u32 silent = needs_nobody(slot, expected, provider, task, tid, next);
  if (!silent && !told && patiently && !begins_inverted(provider, task, next_task, next)) silent = tracer_by_any;
  slot->silent = silent;
  if (silent) {
    slot->blocked_at = about_now(slot);
    if (settle_block(slot, task)) end_silence(slot, tid, silent);
    return;
  }
  slot->blocked_at = clock(now);
  // A waker on another CPU may act on `blocked` at once: the place in the ring before its. (One look at whether there
  // is a place: to the verifier of 6.1 a second one could come out differently. The barrier keeps the compiler from
  // moving what both ways begin with ahead of a second look.)
  struct tracer_record* record = reserve(tracer_record_blocked, tid, *now);
  if (!record) {
    barrier();
    settle_block(slot, task);
    return;
  }
  if (settle_block(slot, task))
    bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
  else
    tell_block(record, slot, *(volatile __u32*)&slot->control, patiently && !told ? tracer_inverted : 0);
}

static __always_inline void woken_record(struct tracer_slot* slot, __u32 tid, __u64 now, __u32 control,
                                         __u8 more_flags) {
  struct tracer_record* record = reserve(tracer_record_woken, tid, now);
  if (!record) return;
  record->flags = slot->wake_flags | more_flags;
  record->call = slot->waker_call;
  record->other = slot->waker;
  record->other_tgid = slot->waker_tgid;
  no_args(record);
  record->args[0] = slot->waker_args[0];
  record->args[1] = slot->waker_args[1];
  record->args[2] = slot->wakes;
  record->value = slot->blocked_at;
  bpf_ringbuf_submit(record, submit_flags(control & tracer_urgent));
}

static __always_inline void left_record(__u32 tid, __u32 waiter, __u64* now) {
  struct tracer_record* record = reserve(tracer_record_left, tid, clock(now));
  if (!record) return;
  record->other = waiter;
  no_args(record);
  bpf_ringbuf_submit(record, submit_flags(1));
}

// Returns the thread that waited for it in silence; from then on no thread can.
static __always_inline __u32 let_go(struct tracer_slot* slot) {
  const __u32 waiter = take_presence(slot);
  free_slot(slot);
  return waiter;
}

static __always_inline void leave(struct task_struct* task, __u32 tid, struct task_struct* next_task, __u32 next,
                                  _Bool waits, __u64* now) {
  struct tracer_slot* slot = slot_of(tid);
  if (!slot) return;
  const __u32 waiter = take_presence(slot);
  if (*(volatile __u32*)&slot->control & tracer_timed) slot->on_since = 0;
  slot->cpu_ns = task->se.sum_exec_runtime;
  const _Bool tells = tells_waiter(waiter, waits, next_task, next);
  if (waits) block(slot, task, tid, next_task, next, tells, now);
  if (tells) left_record(tid, waiter, now);
}

static __always_inline void run(__u32 tid, __u64* now) {
  struct tracer_slot* slot = slot_of(tid);
  if (!slot) return;
  const __u32 control = *(volatile __u32*)&slot->control;
  if (control & tracer_timed) slot->on_since = clock(now);
  slot->on_cpu = 1;
  if (!(control & tracer_watched)) {
    slot->phase = tracer_running;
    return;
  }
  if (slot->phase == tracer_running) return;
  const _Bool missed = slot->phase == tracer_blocked || slot->phase == tracer_unknown;
  slot->phase = tracer_running;
  if (!missed) return;
  const __u32 silent = *(volatile __u32*)&slot->silent;
  if (silent && end_silence(slot, tid, silent)) return;
  woken_record(slot, tid, clock(now), control, silent ? tracer_late | tracer_silent : tracer_late);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempted, struct task_struct* prev, struct task_struct* next) {
  // Preempted threads, and those that yield (state 0), are not waiting for another thread.
  __u64 now = 0;
  const __u32 from = tid_of(prev);
  const __u32 to = tid_of(next);
  struct cpu* cpu = this_cpu();
  const _Bool managed_runs = to && is_managed(to);
  if (cpu) note_running(cpu, prev, next, managed_runs ? to : 0, preempted);
  if (from && is_managed(from)) leave(prev, from, next, to, !preempted && prev->__state != 0, &now);
  if (managed_runs) run(to, &now);
  return 0;
}

// ---- wakes ----

// Loaded only where network_at_work() needs it.
SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq, unsigned int vector) {
  struct cpu* cpu = this_cpu();
  if (cpu) cpu->softirq_vector = vector;
  return 0;
}

static __always_inline void no_waker_call(struct tracer_slot* slot) {
  slot->waker_call = -1;
  slot->waker_args[0] = slot->waker_args[1] = 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct* task) {
  const __u32 tid = tid_of(task);
  if (!is_managed(tid)) return 0;
  struct tracer_slot* slot = slot_of(tid);
  struct cpu* cpu = this_cpu();
  if (!slot || !cpu) return 0;
  struct task_struct* current = running_on(cpu);
  __u8 flags = sender_flags(current, cpu);
  begin_write(&slot->wake_seq);
  struct tracer_slot* own = 0;
  if ((flags & tracer_interrupt) || current->pid == 0) {
    flags = tracer_interrupt;  // the idle thread does what another CPU asked for
    slot->waker = slot->waker_tgid = 0;
    slot->wake_order = 0;
    no_waker_call(slot);
  } else {
    const __u32 waker = tid_of(current);
    slot->waker = waker;
    slot->waker_tgid = tgid_of(current);
    own = is_managed(waker) ? slot_of(waker) : 0;
    slot->wake_order = own ? ++own->wakes : 0;
    if (has_calls(current)) {
      struct pt_regs* regs = regs_of(current);
      const _Bool compat = current->thread_info.status & status_compat;
      slot->waker_call = regs->orig_ax;
      slot->waker_args[0] = compat ? (__u32)regs->bx : regs->di;
      slot->waker_args[1] = compat ? (__u32)regs->cx : regs->si;
      if (compat) flags |= tracer_compat;
    } else {
      flags |= tracer_kernel;
      no_waker_call(slot);
    }
  }
  slot->wake_flags = flags;
  if (!(*(volatile __u32*)&slot->control & tracer_watched)) {
    end_write(&slot->wake_seq);
    return 0;  // its phase is its own to write (block_unwatched)
  }
  const __u32 before = __sync_lock_test_and_set(&slot->phase, tracer_woken);
  end_write(&slot->wake_seq);
  const __u32 control = *(volatile __u32*)&slot->control;
  // A wake that finds the thread awake ends no wait.
  if (before != tracer_blocked && before != tracer_unknown) return 0;
  const __u32 silent = before == tracer_blocked ? *(volatile __u32*)&slot->silent : 0;
  if (silent && end_silence_by(slot, tid, silent, own && own->tid == silent ? own : slot_of_expected(silent))) return 0;
  __u64 now = bpf_ktime_get_ns();
  // Both may have looked at the clock at the same moment.
  if (before == tracer_blocked && now < slot->blocked_at) now = slot->blocked_at;
  slot->woken_at = now;
  woken_record(slot, tid, now, control, silent ? tracer_silent : 0);
  return 0;
}

// ---- the managed set ----

// Before the child's first instruction. Whether it is watched is user space's to decide, which need not hear of it at
// once: most who fork wait next, and that wakes the reader. Until then what the child of an urgent thread does is
// urgent itself.
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  const __u32 parent_tid = tid_of(parent);
  if (!is_managed(parent_tid)) return 0;
  const __u32 tid = tid_of(child);
  struct tracer_slot* own = slot_of(parent_tid);
  const _Bool urgent = own && own->control & tracer_urgent;
  struct tracer_slot* slot = new_slot(tid, urgent ? tracer_watched | tracer_urgent | tracer_unseen : 0);
  if (own && slot && child->pid == child->tgid && child->exit_signal == signal_child && child->real_parent == parent) {
    slot->parent = parent_tid;
    if (own->control & tracer_watched) slot->control |= tracer_awaitable;
    *(volatile __u32*)&own->newborn = tid;
  }
  struct tracer_record* record = reserve(tracer_record_fork, tid, no_time);
  if (!record) {
    if (slot) slot->control &= tracer_awaitable;  // swapd will not say that it has seen it
    return 0;
  }
  if (!slot) record->flags = tracer_without_slot;
  record->other = parent_tid;
  record->parent_tgid = tgid_of(parent);
  record->other_tgid = tgid_of(child);
  no_args(record);
  record->value = child->start_boottime;
  bpf_ringbuf_submit(record, submit_flags(0));
  return 0;
}

// A thread that is not its process's first takes that one's tid when it execs; the first one is gone by then.
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task, int former) {
  const __u32 tid = tid_of(task);
  // Another thread's former id is known only as the kernel's: in a pid namespace user space has to find out whose exec
  // this is, and whether it is its business.
  const __u32 former_tid = former == task->pid ? tid : namespace_level ? 0 : (__u32)former;
  const _Bool unknown = !former_tid;
  if (!tid || (!unknown && !is_managed(former_tid))) return 0;
  struct tracer_slot* slot = unknown ? 0 : slot_of(former_tid);
  const __u32 control = slot ? slot->control : 0;
  __u64 now = 0;
  if (!unknown && tid != former_tid) {  // another thread to user space, which has to say again that it watches it
    set_managed(former_tid, 0);
    const __u32 waiter = slot ? let_go(slot) : 0;
    if (waiter) left_record(former_tid, waiter, &now);
    slot = new_slot(tid, 0);
    if (slot) slot->on_cpu = *(volatile __u32*)&followed;
  }
  struct tracer_record* record = reserve(tracer_record_exec, tid, no_time);
  if (!record) return 0;
  if (!slot && !unknown) record->flags = tracer_without_slot;
  record->other = former_tid;
  record->other_tgid = tgid_of(task);
  no_args(record);
  bpf_ringbuf_submit(record, submit_flags(control & tracer_urgent));
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct* task) {
  const __u32 tid = tid_of(task);
  if (!is_managed(tid)) return 0;
  struct tracer_slot* slot = slot_of(tid);
  __u32 control = slot ? slot->control : 0;
  if (control & tracer_unseen) control = 0;
  struct tracer_slot* parent = slot && slot->parent ? slot_of(slot->parent) : 0;
  if (parent) __sync_val_compare_and_swap(&parent->newborn, tid, 0);
  set_managed(tid, 0);
  const __u32 waiter = slot ? let_go(slot) : 0;
  __u64 now = 0;
  if (waiter && !(task->signal->live.counter == 0 && ends_by_exit(waiter, tid))) left_record(tid, waiter, &now);
  struct tracer_record* record = reserve(tracer_record_exit, tid, no_time);
  if (!record) return 0;
  record->other_tgid = tgid_of(task);
  no_args(record);
  record->value = task->se.sum_exec_runtime;
  bpf_ringbuf_submit(record, submit_flags(control & tracer_urgent));
  return 0;
}
