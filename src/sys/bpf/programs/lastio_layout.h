// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Records of lastio.bpf.c, read by exit_io.cpp.
#pragma once

#ifdef __cplusplus
#include <cstdint>
using lastio_u32 = std::uint32_t;
using lastio_u64 = std::uint64_t;
#else
typedef __u32 lastio_u32;
typedef __u64 lastio_u64;
#endif

enum { lastio_threads = 16384 };

struct lastio_asked {
  lastio_u64 serial;
  lastio_u32 owner;
  lastio_u32 unused;
};

struct lastio_record {
  struct lastio_asked asked;
  lastio_u64 read_chars, written_chars, calls, read_bytes, written_bytes;
  lastio_u32 tid;
  lastio_u32 unused;
};
