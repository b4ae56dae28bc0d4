// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Finds which thread has a CPU, what it does there, and what share of it is due to it: a look at each CPU whenever its
// clock event fires (perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK), a few hundred times a second. Nothing is attached to
// switches or wakeups.
//
// x86-64: a loop that waits is known by its PAUSE instruction, or by registers that come back.
#include "kernel_types.bpf.h"
//
#include <linux/bpf.h>
//
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "ids.bpf.h"
#include "profile_layout.h"

char license_text[] SEC("license") = "Dual BSD/GPL";

enum {
  max_levels = 8,    // of control groups
  code_before = 24,  // bytes of the thread's code that are looked at
  code_bytes = 48,
  call_yield = 24,     // x86-64
  pause_first = 0xf3,  // PAUSE is F3 90
  pause_second = 0x90,
  first_nice_prio = 100,
  nice_values = 40,
  rival_counts_from = 10,  // parts of a thread's own weight
  weight_shift = 10,  // the kernel's load weights have ten bits more on 64-bit machines
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct load_weight {
  unsigned long weight;
};
struct rq___profile {
  int cpu;
};
struct task_group;
struct cfs_rq___profile {
  struct load_weight load;
  struct rq___profile* rq;  // with CONFIG_FAIR_GROUP_SCHED
  struct task_group* tg;    // as well
};
struct sched_entity___profile {
  struct load_weight load;
  struct cfs_rq___profile* cfs_rq;
  struct sched_entity___profile* parent;  // with CONFIG_FAIR_GROUP_SCHED
  unsigned char on_rq;                    // an unsigned int before 6.12
  __u64 sum_exec_runtime;
};
struct task_struct___profile {
  int static_prio;
  unsigned long nvcsw;
  struct sched_entity___profile se;
};

#pragma clang attribute pop

// struct bpf_perf_event_data of linux/bpf_perf_event.h, whose registers have another name in kernel_types.bpf.h.
struct clock_event {
  __u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
  __u64 sample_period, addr;
};

// sched_prio_to_weight of kernel/sched/core.c, whose rounding is part of the interface.
static const __u32 weights[nice_values] = {
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906,  3121,  2501,  1991,  1586,  1277,  1024,  820,   655,   526,   423,  335,  272,  215,
    172,   137,   110,   87,    70,    56,    45,    36,    29,    23,    18,   15,
};

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, profile_threads);
  __type(key, __u32);
  __type(value, struct profile_thread);
} threads SEC(".maps");

// The threads that are followed: user space says which. What is due to one is looked at also while others have its CPU.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, profile_threads);
  __type(key, __u32);
  __type(value, __u8);
} followed SEC(".maps");

// Those of them that each CPU had last.
struct here {
  __u64 entities[profile_followed];
  __u32 tids[profile_followed];
  __u32 next;
  __u32 unused;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct here);
} cpus SEC(".maps");

static const struct profile_thread nothing;  // a new thread's; the stack has no room for another

static __always_inline __u32 weight_of(struct task_struct___profile* task) {
  const __u32 place = BPF_CORE_READ(task, static_prio) - first_nice_prio;
  return place < nice_values ? weights[place] : 1024;
}

static __always_inline _Bool is_queued(struct sched_entity___profile* entity) {
  return BPF_CORE_READ_BITFIELD_PROBED(entity, on_rq);
}

// Weight of the others in this queue, as the kernel has it: with ten bits more than a nice value's.
static __always_inline __u64 others_in(struct sched_entity___profile* entity) {
  __u64 all = BPF_CORE_READ(entity, cfs_rq, load.weight);
  const __u64 own = is_queued(entity) ? BPF_CORE_READ(entity, load.weight) : 0;
  return all > own ? all - own : 0;
}

static __always_inline void note_group(struct profile_thread* seen, struct sched_entity___profile* entity) {
  seen->group = (__u64)BPF_CORE_READ(entity, cfs_rq);
  if (bpf_core_field_exists(struct cfs_rq___profile, tg))
    seen->whole_group = (__u64)BPF_CORE_READ(entity, cfs_rq, tg);
}

static __always_inline void note_shares(struct profile_thread* seen, struct sched_entity___profile* entity) {
  ++seen->looks;
  note_group(seen, entity);
  // (Not the mean of the weights: a heavy thread that is there for a moment takes no more than that.)
  const __u64 weight = seen->weight ? seen->weight : 1;
  seen->inner += profile_share_one * weight / (weight + (others_in(entity) >> weight_shift));
  __u64 share = profile_share_one;
  if (bpf_core_field_exists(entity->parent)) {
    for (int level = 0; level < max_levels; ++level) {
      entity = BPF_CORE_READ(entity, parent);
      if (!entity) break;
      // (A group may be worth less than one of a nice value's units on this CPU.)
      __u64 own = BPF_CORE_READ(entity, load.weight);
      if (!own) own = 1;
      share = share * own / (own + others_in(entity));
    }
  }
  seen->upper += share;
}

// Whether any other thread that counts is in the queues on the way to this CPU.
static __always_inline void note_rivals(struct profile_thread* seen, struct sched_entity___profile* entity) {
  __u64 others = others_in(entity);
  note_group(seen, entity);
  if (bpf_core_field_exists(entity->parent)) {
    for (int level = 0; level < max_levels; ++level) {
      entity = BPF_CORE_READ(entity, parent);
      if (!entity) break;
      others += others_in(entity);
    }
  }
  ++seen->rival_looks;
  if ((others >> weight_shift) * rival_counts_from < seen->weight) ++seen->without_rivals;
}

// The followed threads of this CPU, which `current` has. What is due to them is not looked at while a real-time thread
// has it.
static __attribute__((noinline)) int note_followed(struct here* here, __u32 current, _Bool is_realtime) {
  if (!here) return 0;
  const int cpu = (int)bpf_get_smp_processor_id();
  for (int i = 0; i < profile_followed; ++i) {
    const __u32 tid = here->tids[i];
    if (!tid) continue;
    struct sched_entity___profile* entity = (void*)here->entities[i];
    struct profile_thread* seen = bpf_map_lookup_elem(&threads, &tid);
    if (!seen || BPF_CORE_READ(entity, cfs_rq, rq, cpu) != cpu)
      here->tids[i] = 0;  // it has gone, or is elsewhere by now
    else {
      note_rivals(seen, entity);
      if (!is_realtime && tid != current) note_shares(seen, entity);
    }
  }
  return 0;
}

static __always_inline void remember_here(struct here* here, __u32 tid, struct sched_entity___profile* entity) {
  for (int i = 0; i < profile_followed; ++i)
    if (here->tids[i] == tid) return;
  const __u32 place = here->next++ % profile_followed;
  here->entities[place] = (__u64)entity;
  here->tids[place] = tid;
}

static __always_inline _Bool has_pause(__u64 ip) {
  unsigned char code[code_bytes];
  if (bpf_probe_read_user(code, sizeof code, (void*)(ip - code_before))) return 0;
  for (int i = 0; i + 1 < code_bytes; ++i)
    if (code[i] == pause_first && code[i + 1] == pause_second) return 1;
  return 0;
}

// Numbers of x86-64: poll, select, recvfrom, recvmsg, epoll_wait, pselect6, ppoll, epoll_pwait, recvmmsg,
// io_uring_enter, epoll_pwait2. A thread that has a CPU there does not sleep in it, at least not yet.
static __always_inline _Bool asks_for_messages(__u64 call) {
  switch (call) {
    case 7:
    case 23:
    case 45:
    case 47:
    case 232:
    case 270:
    case 271:
    case 281:
    case 299:
    case 426:
    case 441:
      return 1;
    default:
      return 0;
  }
}

// The registers as one number.
static __always_inline __u64 state_of(const struct clock_event* regs) {
  const __u64 odd = 0x9e3779b97f4a7c15;
  __u64 state = regs->ip;
  state = (state ^ regs->ax) * odd;
  state = (state ^ regs->bx) * odd;
  state = (state ^ regs->cx) * odd;
  state = (state ^ regs->dx) * odd;
  state = (state ^ regs->si) * odd;
  state = (state ^ regs->di) * odd;
  state = (state ^ regs->bp) * odd;
  state = (state ^ regs->sp) * odd;
  state = (state ^ regs->r8) * odd;
  state = (state ^ regs->r9) * odd;
  return (state ^ regs->r10) * odd;
}

static __always_inline _Bool was_in(struct profile_thread* seen, __u64 state) {
  _Bool known = 0;
  for (int i = 0; i < profile_states; ++i) known |= seen->states[i] == state;
  if (!known) seen->states[seen->next_state++ % profile_states] = state;
  return known;
}

static __always_inline void note_doing(struct profile_thread* seen, const struct clock_event* event) {
  if (event->cs & 3) {
    seen->places[seen->in_user++ % profile_places] = event->ip;
    const _Bool known = was_in(seen, state_of(event));
    if (known || has_pause(event->ip)) ++seen->spins;
    return;
  }
  struct task_struct* task = bpf_get_current_task_btf();
  struct pt_regs* own = (struct pt_regs*)bpf_task_pt_regs(task);
  __u64 call = 0;
  bpf_probe_read_kernel(&call, sizeof call, (void*)own + bpf_core_field_offset(struct pt_regs, orig_ax));
  if (call == call_yield) ++seen->yields;
  if (asks_for_messages(call)) ++seen->asks;
}

SEC("perf_event")
int on_clock(struct clock_event* event) {
  struct task_struct* task = bpf_get_current_task_btf();
  const __u32 tid = tid_of(task);
  if (!tid) return 0;
  struct profile_thread* seen = bpf_map_lookup_elem(&threads, &tid);
  if (!seen) {
    if (bpf_map_update_elem(&threads, &tid, &nothing, BPF_NOEXIST)) return 0;
    seen = bpf_map_lookup_elem(&threads, &tid);
    if (!seen) return 0;
  }
  struct task_struct___profile* known = (void*)task;
  ++seen->samples;
  seen->tgid = tgid_of(task);
  seen->cpu = bpf_get_smp_processor_id();
  seen->weight = weight_of(known);
  seen->cpu_ns = BPF_CORE_READ(known, se.sum_exec_runtime);
  seen->blocks = BPF_CORE_READ(known, nvcsw);
  seen->start_boottime = task->start_boottime;
  note_doing(seen, event);
  const __u32 zero = 0;
  struct here* here = bpf_map_lookup_elem(&cpus, &zero);
  if (!here) return 0;
  if (bpf_map_lookup_elem(&followed, &tid)) remember_here(here, tid, &known->se);
  const _Bool is_beside = task->prio < first_nice_prio;  // of these queues, as any real-time thread
  if (!is_beside) note_shares(seen, &known->se);
  note_followed(here, tid, is_beside);
  return 0;
}
