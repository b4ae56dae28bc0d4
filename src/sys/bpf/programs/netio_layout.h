// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Counters of netio.bpf.c, read by net_io.cpp.
#pragma once

#ifdef __cplusplus
#include <cstdint>
using netio_u64 = std::uint64_t;
#else
typedef __u64 netio_u64;
#endif

enum { netio_threads = 16384 };

struct netio_counters {
  netio_u64 received, sent;  // bytes
};
