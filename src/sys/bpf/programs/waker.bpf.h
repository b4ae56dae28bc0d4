// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Is the running thread the one that wakes, or does an interrupt borrow it? (docs/bpf.md, "Who is the waker")
#pragma once

enum {
  vector_net_tx = 2,  // interrupt.h
  vector_net_rx = 3,
  count_softirq = 0x100,       // preempt.h: serving a soft interrupt
  count_interrupt = 0xff0000,  // … a hard one, or an NMI
};

// Set before loading.
volatile const __u32 own_tgid = 0;  // swapd
// The kernel has bpf_rdonly_cast (6.2): what an address holds can be read without a helper, each of which costs 20 to
// 40 ns.
volatile const __u32 can_cast = 0;  // a _Bool would be unknown to the C++ that sets it
extern void* bpf_rdonly_cast(const void* object, __u32 type) __ksym __weak;
// The code that runs soft interrupts for a thread that enables them: first address and end of each part.
volatile const __u64 own_softirq_first[tracer_code_parts] = {};
volatile const __u64 own_softirq_end[tracer_code_parts] = {};

// Places of per-CPU variables in their section, and of pcpu_hot, which holds the last three from 6.2 to 6.14.
volatile const __u64 runqueues_at = 0, pcpu_hot_at = 0;
volatile const __u64 softnet_data_at = 0;  // 0: it does not tell what softirq_is_own() asks for
volatile const __u64 preempt_count_at = 0, hardirq_stack_ptr_at = 0, hardirq_stack_inuse_at = 0;

// The number that an address holds; 0 where that cannot be read. (Any structures that begin with a number of that size
// would do.)
static __always_inline __u32 kernel_number(__u64 at) {
  if (can_cast)
    return ((struct qspinlock*)bpf_rdonly_cast((void*)at, bpf_core_type_id_kernel(struct qspinlock)))->val.counter;
  __u32 number = 0;
  bpf_probe_read_kernel(&number, sizeof number, (void*)at);
  return number;
}

static __always_inline __u64 kernel_word(__u64 at) {
  if (can_cast) return ((struct pt_regs*)bpf_rdonly_cast((void*)at, bpf_core_type_id_kernel(struct pt_regs)))->r15;
  __u64 word = 0;
  bpf_probe_read_kernel(&word, sizeof word, (void*)at);
  return word;
}

// State of a CPU, as far as it is known.
struct cpu {
  __u64 running;  // the thread, since its last switch; 0: there was none yet
  __u64 number;
  __u64 base;            // where its variables begin, once that is known
  __u64 softirq_vector;  // the soft interrupt that it serves, or last served
  struct tracer_cpu now;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct cpu);
} cpus SEC(".maps");

static __always_inline struct cpu* this_cpu(void) {
  const __u32 key = 0;
  return bpf_map_lookup_elem(&cpus, &key);
}

// While swapd itself has the CPU, the thread that it preempted counts as running: it is the one to go on. The engine
// looks from the CPU on which it runs, and would find itself there. managed: the thread's id, if it is.
static __always_inline void note_running(struct cpu* cpu, struct task_struct* prev, struct task_struct* next,
                                         __u32 managed, _Bool preempted) {
  cpu->running = (__u64)next;
  if (!managed && tgid_of(next) == own_tgid) {
    if (preempted || !prev->__state || tgid_of(prev) == own_tgid) return;
    cpu->now.tid = cpu->now.prio = 0;
    return;
  }
  cpu->now.tid = managed;
  cpu->now.prio = next->pid ? next->prio : 0;  // the idle thread's says nothing
}

static __always_inline _Bool runs_on(struct task_struct* task, __u64 cpu) {
  if (!bpf_core_field_exists(task->on_cpu)) return 1;  // a kernel for one CPU
  return task->on_cpu && (bpf_core_field_exists(task->thread_info.cpu) ? task->thread_info.cpu : task->cpu) == cpu;
}

// To ask for it takes longer than to know it from the last switch, and to see that it still runs here: a kernel has
// been met on which the switches of some threads reach no tracepoint.
static __always_inline struct task_struct* running_on(struct cpu* cpu) {
  if (!can_cast) return bpf_get_current_task_btf();
  struct task_struct* noted = bpf_rdonly_cast((void*)cpu->running, bpf_core_type_id_kernel(struct task_struct));
  if (cpu->running && runs_on(noted, cpu->number)) return noted;
  cpu->number = bpf_get_smp_processor_id();
  cpu->running = bpf_get_current_task();
  return bpf_rdonly_cast((void*)cpu->running, bpf_core_type_id_kernel(struct task_struct));
}

// Is it the network's soft interrupt that this CPU serves? Newer kernels note where they handle what was received (and
// leave the note where they break off to go on soon, so that another soft interrupt may come in between), older ones
// are watched: at each soft interrupt (on_softirq), some 100 ns a packet.
static __always_inline _Bool network_at_work(const struct cpu* cpu, __u64 base) {
  if (!softnet_data_at || !bpf_core_field_exists(struct softnet_data, in_net_rx_action))
    return cpu->softirq_vector == vector_net_tx || cpu->softirq_vector == vector_net_rx;
  const void* at = (void*)(base + softnet_data_at);
  return ((struct softnet_data*)bpf_rdonly_cast(at, bpf_core_type_id_kernel(struct softnet_data)))->in_net_rx_action;
}

// Tells whether the running soft interrupt is the thread's own doing. One that is pending when a thread enables them
// again (local_bh_enable, do_softirq) runs on the interrupt stack, called from there: that is the thread's own doing,
// as the delivery of what it sends to the loopback device is. One that runs at the end of a hard interrupt was called
// from that interrupt's entry, or runs on the thread's stack where the interrupt came from user space; ksoftirqd runs
// it on its own stack. So the return address at the top of the interrupt stack tells. A soft interrupt that a hard one
// had raised while soft ones were disabled runs there too, so it must be the network's besides.
static __always_inline _Bool softirq_is_own(const struct cpu* cpu) {
  const __u64 base = cpu->base;
  if (!network_at_work(cpu, base)) return 0;
  __u64 in_use_at = base + hardirq_stack_inuse_at, top_at = base + hardirq_stack_ptr_at;
  if (bpf_core_type_exists(struct pcpu_hot)) {
    struct pcpu_hot* hot = (struct pcpu_hot*)(base + pcpu_hot_at);
    in_use_at = (__u64)&hot->hardirq_stack_inuse;
    top_at = (__u64)&hot->hardirq_stack_ptr;
  }
  if (!(kernel_number(in_use_at) & 0xff)) return 0;
  const __u64 back = kernel_word(kernel_word(top_at) - sizeof(__u64));
  for (int i = 0; i < tracer_code_parts; ++i)
    if (back > own_softirq_first[i] && back <= own_softirq_end[i]) return 1;
  return 0;
}

// The begin of this CPU's variables. A kernel without CONFIG_KALLSYMS_ALL cannot name them to a program, but the
// running thread leads to the run queue of its CPU, and BTF says how far the others are from that.
static __always_inline __u64 percpu_base(struct task_struct* current) {
  struct cfs_rq* cfs = current->se.cfs_rq;
  if (bpf_core_field_exists(cfs->rq)) return (__u64)cfs->rq - runqueues_at;
  return (__u64)cfs - bpf_core_field_offset(struct rq, cfs) - runqueues_at;
}

// Is the running thread the one that wakes? Flags of the wake; tracer_interrupt: no.
static __always_inline __u8 sender_flags(struct task_struct* current, struct cpu* cpu) {
  if (!cpu->base) cpu->base = percpu_base(current);
  __u64 at = cpu->base + preempt_count_at;
  if (bpf_core_type_exists(struct pcpu_hot))
    at = (__u64) & ((struct pcpu_hot*)(cpu->base + pcpu_hot_at))->preempt_count;
  const __u32 count = kernel_number(at);
  if (count & count_interrupt) return tracer_interrupt;
  if (!(count & count_softirq)) return 0;
  return softirq_is_own(cpu) ? tracer_own_softirq : tracer_interrupt;
}
