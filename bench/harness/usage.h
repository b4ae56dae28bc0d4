// What processes have used, from procfs. A process that is gone has used nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace swapd::bench {

[[nodiscard]] double process_cpu_s(pid_t pid);  // with its ended threads
[[nodiscard]] double tree_cpu_s(pid_t pid);     // and all below it, ended ones that were reaped too
[[nodiscard]] double thread_cpu_s(pid_t pid, const std::string& comm);  // of its threads of that name
[[nodiscard]] std::uint64_t voluntary_switches(pid_t pid);              // of its threads that live
[[nodiscard]] std::uint64_t rss_bytes(pid_t pid);

}  // namespace swapd::bench
