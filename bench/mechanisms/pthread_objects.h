// Mutexes and condition variables for the mechanisms.
#pragma once

#include "base/result.h"
#include "harness/shared.h"

namespace swapd::bench {

struct PthreadKind {
  bool shared = false;    // between processes (PTHREAD_PROCESS_SHARED)
  bool inherits = false;  // PTHREAD_PRIO_INHERIT
};

[[nodiscard]] Status make_mutexes(SyncObjects& objects, PthreadKind kind);
// And the mutexes they need.
[[nodiscard]] Status make_conditions(SyncObjects& objects, PthreadKind kind);

}  // namespace swapd::bench
