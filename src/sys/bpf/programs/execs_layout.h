// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Records of execs.bpf.c, read by exec_events.cpp.
#pragma once

#ifdef __cplusplus
#include <cstdint>
using execs_u32 = std::uint32_t;
using execs_u64 = std::uint64_t;
#else
typedef __u32 execs_u32;
typedef __u64 execs_u64;
#endif

enum { execs_path = 128, execs_args = 256 };
enum { execs_started = 0, execs_changed = 1 };  // changed: only the tgid is told

struct execs_record {
  execs_u64 start_boottime;  // ns, of the process
  execs_u32 tgid;
  execs_u32 uid;        // real
  execs_u32 args_size;  // bytes, the arguments' zeros included; may be cut off
  execs_u32 what;
  char comm[16];
  char path[execs_path];  // as execve(2) was given it, cut off
  char args[execs_args];
};
