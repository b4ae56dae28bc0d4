// Prepares swapd itself against the load it fights (docs/design.md, Threads): locked memory, its own autogroup, its
// threads' names.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "base/result.h"
#include "base/time.h"

namespace swapd::sys {

// mlockall(2), present and future pages, as they are touched, or (`all`) before. No-op under sanitizers.
[[nodiscard]] Status lock_memory(bool all = false);
// Gives freed memory back to the kernel, locked memory too (malloc_trim(3) leaves that alone). Another thread may have
// to wait for a page meanwhile. An error: the memory could not be locked again.
[[nodiscard]] Status give_back_memory();
// The calling thread's heap has room for so many bytes, none of them touched: to let it grow is a call that waits for
// other threads of ours that are in a page fault, and may have lost their CPU there.
void reserve_heap(std::size_t bytes);
// The table of open files has room for so many. To let it grow later is a call in which a thread of a process that has
// several waits for an RCU grace period (fs/file.c, expand_fdtable()): seconds beside busy loops, and every other
// thread that opens a file then waits with it. Called before there are threads.
[[nodiscard]] Status reserve_descriptors(unsigned count);
// Writes the nice of the caller's own autogroup (sched(7)). Only sensible for a session leader: the group is the
// session's.
[[nodiscard]] Status set_own_autogroup_nice(int nice);
// setpriority(2) for one thread of ours; tid 0 is the caller.
[[nodiscard]] Status set_thread_nice(pid_t tid, int nice);
// Makes the calling thread go before all ordinary ones: real-time, FIFO 1, or nice -20 where that is not allowed. Where
// the kernel spreads load over the CPUs a real-time thread weighs nothing. One of nice -20 weighs as much as 87 of nice
// 0, and threads are moved out of its way, which stay where they do not get the CPU time that their nice values say.
void go_before_ordinary_threads();
// At most 15 characters.
void name_thread(const char* name);
[[nodiscard]] pid_t own_tid();
// CPU time that the calling thread has used.
[[nodiscard]] Duration own_cpu_time();
// The same of another thread of our own process.
[[nodiscard]] Duration own_thread_cpu_time(pid_t tid);
// CPU time of all threads of a process, ended ones too, as /proc/PID/stat counts it; 0: the calling process. Zero where
// the process has ended.
[[nodiscard]] Duration process_cpu_time(pid_t pid = 0);
// The process that a pidfd stands for, in our pid namespace (its fdinfo, proc(5)).
[[nodiscard]] Result<int> pid_of_pidfd(int pidfd);

}  // namespace swapd::sys
