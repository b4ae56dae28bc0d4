// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Shared by io_uring.bpf.c and io_uring_requests.cpp.
// NOLINTBEGIN(readability-identifier-naming)
#pragma once

#include <linux/types.h>

enum { rings_most = 256 };

struct rings_request {
  __u64 inode;
  __u32 device;  // as stat(2) has it
  __s32 fd;      // -1: it has none
  __u32 events;  // of POLL_ADD: as poll(2)
  __u8 opcode;   // IORING_OP_…
  __u8 padding[3];
};

// The program's place in a ring's table; addresses.
struct rings_walk {
  __u64 ring, files, buckets, node;
  __u32 number, next_bucket;
};
// NOLINTEND(readability-identifier-naming)
