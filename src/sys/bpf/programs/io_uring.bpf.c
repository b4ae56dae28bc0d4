// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Finds which requests of an io_uring wait for their files to become ready. They stand in the ring's table of what can
// be cancelled (io_uring/poll.c, io_poll_req_insert()); only the kernel sees it whole. Read when swapd asks, never on
// the programs' way.
//
// The table is read without its locks: a request that ends meanwhile may be missed, and one that has been used again
// for another ring ends the walk. All loops are bounded.
#include <linux/bpf.h>
//
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "io_uring_layout.h"

char license_text[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
  unsigned long s_magic;
  __u32 s_dev;
};
struct inode {
  unsigned long i_ino;
  struct super_block* i_sb;
};
struct qstr {
  const unsigned char* name;
};
struct dentry {
  struct qstr d_name;
};
struct path {
  struct dentry* dentry;
};
struct file {
  struct inode* f_inode;
  struct path f_path;
  void* private_data;
};
struct fdtable {
  unsigned int max_fds;
  struct file** fd;
};
struct files_struct {
  struct fdtable* fdt;
};
struct hlist_node {
  struct hlist_node* next;
};
struct hlist_head {
  struct hlist_node* first;
};
struct io_hash_bucket {
  struct hlist_head list;
};
struct io_hash_table {
  struct io_hash_bucket* hbs;
  unsigned hash_bits;
};
struct io_ring_ctx {
  struct io_hash_table cancel_table;
  struct io_hash_table cancel_table_locked;  // 6.0 to 6.10: of rings with a single issuer
};
struct io_cqe {
  int fd;
};
struct io_poll {
  __u32 events;
};
struct io_kiocb {
  struct io_ring_ctx* ctx;
  struct file* file;
  __u8 opcode;
  __u64 flags;
  struct io_cqe cqe;
  struct hlist_node hash_node;
};
struct io_uring_task {
  struct file* registered_rings[16];
};
struct task_struct {
  struct files_struct* files;
  struct io_uring_task* io_uring;
};
struct bpf_iter__task {
  struct task_struct* task;
};

#pragma clang attribute pop

enum {
  opcode_poll_add = 6,     // IORING_OP_POLL_ADD
  request_fixed = 1,       // REQ_F_FIXED_FILE
  anonymous = 0x09041934,  // ANON_INODE_FS_MAGIC
  max_steps = 8192,        // buckets and requests
  registered_rings = 16,   // IO_RINGFD_REG_MAX
};

// Set by swapd before each run.
__s32 ring_fd = -1;
__u8 ring_registered;  // it is an index of what the thread has registered
// Findings of the run.
__u32 tasks;  // it ran for
__u8 is_ring;
__u32 count;
struct rings_request requests[rings_most];

// Not on the stack: a verifier before 6.7 goes through a loop's body once, and takes what the stack held at the
// beginning for what it holds in every round.
struct rings_walk walk;

static struct file* file_at(struct fdtable* files, __u32 fd) {
  struct file* file = 0;
  if (!files || fd >= BPF_CORE_READ(files, max_fds)) return 0;
  bpf_probe_read_kernel(&file, sizeof file, BPF_CORE_READ(files, fd) + fd);
  return file;
}

static void note(struct io_kiocb* request, struct fdtable* files) {
  const __u32 at = count;
  if (at >= rings_most) return;
  struct rings_request* out = &requests[at & (rings_most - 1)];
  struct file* file = BPF_CORE_READ(request, file);
  out->opcode = BPF_CORE_READ(request, opcode);
  const __s32 fd = BPF_CORE_READ(request, cqe.fd);
  // Closed since, another file's, or an index of the ring's own table: it has no number.
  const _Bool numbered = !(BPF_CORE_READ(request, flags) & request_fixed) && file_at(files, fd) == file;
  out->fd = numbered ? fd : -1;
  out->inode = BPF_CORE_READ(file, f_inode, i_ino);
  const __u32 device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);  // 12 bits and 20, as the kernel keeps it
  const __u32 minor = device & 0xfffff;
  out->device = (minor & 0xff) | device >> 20 << 8 | (minor & ~0xffU) << 12;
  // The command's own part stands where the file does (`file` is its first member too).
  out->events = out->opcode == opcode_poll_add ? BPF_CORE_READ((struct io_poll*)request, events) : 0;
  count = at + 1;
}

static long step(__u32 i, void* context) {
  if (!walk.node) {
    if (walk.next_bucket >= walk.number) return 1;
    const __u64 at = walk.buckets + (__u64)walk.next_bucket * bpf_core_type_size(struct io_hash_bucket);
    walk.node = (__u64)BPF_CORE_READ((struct io_hash_bucket*)at, list.first);
    walk.next_bucket++;
    return 0;
  }
  struct hlist_node* node = (struct hlist_node*)walk.node;  // what BPF_CORE_READ is given, it relocates
  struct io_kiocb* request = (struct io_kiocb*)((__u64)node - bpf_core_field_offset(struct io_kiocb, hash_node));
  if ((__u64)BPF_CORE_READ(request, ctx) != walk.ring) return 1;
  note(request, (struct fdtable*)walk.files);
  walk.node = (__u64)BPF_CORE_READ(node, next);
  return 0;
}

static void list(struct io_ring_ctx* ring, struct fdtable* files, __u64 buckets, __u32 bits) {
  if (!buckets || bits > 12) return;
  walk.ring = (__u64)ring;
  walk.files = (__u64)files;
  walk.buckets = buckets;
  walk.number = 1U << bits;
  walk.next_bucket = 0;
  walk.node = 0;
  bpf_loop(max_steps, step, 0, 0);
}

static struct file* ring_of(struct task_struct* task, struct fdtable* files) {
  const __u32 at = ring_fd;
  if (ring_registered) {
    struct file* file = 0;
    struct io_uring_task* own = BPF_CORE_READ(task, io_uring);
    if (own && at < registered_rings)
      bpf_probe_read_kernel(
          &file, sizeof file,
          (void*)((__u64)own + bpf_core_field_offset(struct io_uring_task, registered_rings) + at * sizeof file));
    return file;
  }
  return file_at(files, at);
}

// Another thread may have put another file there meanwhile, and may have chosen its name.
static _Bool names_a_ring(struct file* file) {
  static const char ring[] = "[io_uring]";
  if (BPF_CORE_READ(file, f_inode, i_sb, s_magic) != anonymous) return 0;
  char name[sizeof ring] = {};
  if (bpf_probe_read_kernel_str(name, sizeof name, BPF_CORE_READ(file, f_path.dentry, d_name.name)) != sizeof name)
    return 0;
  for (unsigned i = 0; i < sizeof ring; ++i)
    if (name[i] != ring[i]) return 0;
  return 1;
}

SEC("iter/task")
int list_requests(struct bpf_iter__task* context) {
  struct task_struct* task = context->task;
  if (!task) return 0;
  ++tasks;
  struct fdtable* files = BPF_CORE_READ(task, files, fdt);
  struct file* file = ring_of(task, files);
  if (!file || !names_a_ring(file)) return 0;
  struct io_ring_ctx* ring = BPF_CORE_READ(file, private_data);
  if (!ring) return 0;
  is_ring = 1;
  list(ring, files, (__u64)BPF_CORE_READ(ring, cancel_table.hbs), BPF_CORE_READ(ring, cancel_table.hash_bits));
  if (bpf_core_field_exists(ring->cancel_table_locked))
    list(ring, files, (__u64)BPF_CORE_READ(ring, cancel_table_locked.hbs),
         BPF_CORE_READ(ring, cancel_table_locked.hash_bits));
  return 0;
}
