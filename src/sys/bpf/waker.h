// Is the running thread the one that wakes, or does an interrupt borrow it? (docs/bpf.md, "Who is the waker")
#pragma once

enum {
  vector_net_tx = 2,  // interrupt.h
  vector_net_rx = 3,
  count_softirq = 0x100,       // preempt.h: serving a soft interrupt
  count_interrupt = 0xff0000,  // … a hard one, or an NMI
};

// Set before loading.
// The kernel has bpf_rdonly_cast (6.2): what an address holds can be read without a helper, each of which costs 20 to
// 40 ns.
volatile const __u32 can_cast = 0;  // a _Bool would be unknown to the C++ that sets it
extern void* bpf_rdonly_cast(const void* object, __u32 type) __ksym __weak;
// The code that runs soft interrupts for a thread that enables them: first address and end of each part.
volatile const __u64 own_softirq_first[tracer_code_parts] = {};
volatile const __u64 own_softirq_end[tracer_code_parts] = {};

// Places of per-CPU variables in their section, and of pcpu_hot, which holds the last three from 6.2 to 6.14.
volatile const __u64 runqueues_at = 0, pcpu_hot_at = 0;
volatile const __u64 preempt_count_at = 0, hardirq_stack_ptr_at = 0, hardirq_stack_inuse_at = 0;

// What is known of a CPU.
struct cpu {
  __u64 running;         // the thread, since its last switch; 0: there was none yet
  __u64 base;            // where its variables begin, once that is known
  __u64 softirq_vector;  // the soft interrupt that it serves, or last served
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

// To ask for it takes longer than to know it from the last switch. (No switch is missed: its tracepoint runs with
// interrupts off, on the CPU that switches.)
static __always_inline struct task_struct* running_on(const struct cpu* cpu) {
  if (!can_cast) return bpf_get_current_task_btf();
  const __u64 at = cpu->running ? cpu->running : bpf_get_current_task();
  return bpf_rdonly_cast((void*)at, bpf_core_type_id_kernel(struct task_struct));
}

// Who runs a soft interrupt? One that is pending when a thread enables them again (local_bh_enable, do_softirq) runs on
// the interrupt stack, called from there: that is the thread's own doing, as the delivery of what it sends to
// the loopback device is. One that runs at the end of a hard interrupt was called from that interrupt's entry, or runs
// on the thread's stack where the interrupt came from user space; ksoftirqd runs it on its own stack. So the return
// address at the top of the interrupt stack tells. What a hard interrupt had raised while soft ones were disabled is
// run there too, so it must be the network's besides.
static __always_inline _Bool softirq_is_own(const struct cpu* cpu) {
  if (cpu->softirq_vector != vector_net_tx && cpu->softirq_vector != vector_net_rx) return 0;
  const __u64 base = cpu->base;
  __u64 top = 0, back = 0;
  _Bool in_use = 0;
  if (bpf_core_type_exists(struct pcpu_hot)) {
    struct pcpu_hot* hot = (struct pcpu_hot*)(base + pcpu_hot_at);
    bpf_probe_read_kernel(&in_use, sizeof in_use, &hot->hardirq_stack_inuse);
    bpf_probe_read_kernel(&top, sizeof top, &hot->hardirq_stack_ptr);
  } else {
    bpf_probe_read_kernel(&in_use, sizeof in_use, (void*)(base + hardirq_stack_inuse_at));
    bpf_probe_read_kernel(&top, sizeof top, (void*)(base + hardirq_stack_ptr_at));
  }
  if (!in_use || bpf_probe_read_kernel(&back, sizeof back, (void*)(top - sizeof back)) != 0) return 0;
  for (int i = 0; i < tracer_code_parts; ++i)
    if (back > own_softirq_first[i] && back <= own_softirq_end[i]) return 1;
  return 0;
}

// Where this CPU's variables begin. A kernel without CONFIG_KALLSYMS_ALL cannot name them to a program, but the running
// thread leads to the run queue of its CPU, and BTF says how far the others are from that.
static __always_inline __u64 percpu_base(struct task_struct* current) {
  struct cfs_rq* cfs = current->se.cfs_rq;
  if (bpf_core_field_exists(cfs->rq)) return (__u64)cfs->rq - runqueues_at;
  return (__u64)cfs - bpf_core_field_offset(struct rq, cfs) - runqueues_at;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq, unsigned int vector) {
  struct cpu* cpu = this_cpu();
  if (cpu) cpu->softirq_vector = vector;
  return 0;
}

// Is the running thread the one that wakes? Flags of the wake; tracer_interrupt: no.
static __always_inline __u8 sender_flags(struct task_struct* current, struct cpu* cpu) {
  if (!cpu->base) cpu->base = percpu_base(current);
  void* at = (void*)(cpu->base + preempt_count_at);
  if (bpf_core_type_exists(struct pcpu_hot)) at = &((struct pcpu_hot*)(cpu->base + pcpu_hot_at))->preempt_count;
  int count = count_interrupt;
  if (can_cast)  // any structure that begins with a number would do
    count = ((struct qspinlock*)bpf_rdonly_cast(at, bpf_core_type_id_kernel(struct qspinlock)))->val.counter;
  else
    bpf_probe_read_kernel(&count, sizeof count, at);
  if (count & count_interrupt) return tracer_interrupt;
  if (!(count & count_softirq)) return 0;
  return softirq_is_own(cpu) ? tracer_own_softirq : tracer_interrupt;
}
