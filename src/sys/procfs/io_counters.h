// Bytes and calls of one thread, as the kernel counts them (/proc/PID/task/TID/io; Documentation/filesystems/proc.rst,
// section 3.3).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/io_counters.h"
#include "base/result.h"

namespace swapd::sys {

using swapd::IoCounters;

// The difference of two looks at one thread.
[[nodiscard]] IoCounters between(const IoCounters& before, const IoCounters& now);
// Such as only another thread's can, which has taken over the id as it execs.
[[nodiscard]] bool goes_backwards(const IoCounters& before, const IoCounters& now);

class ThreadIo {
 public:
  // Bound to this very thread, also where its id is used again. EACCES: it may not be traced.
  [[nodiscard]] static Result<ThreadIo> open(const std::string& proc_root, pid_t tid);
  [[nodiscard]] Result<IoCounters> read() const;  // ESRCH: it has ended

 private:
  friend Result<IoCounters> process_io(const std::string& proc_root, pid_t tgid);
  explicit ThreadIo(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

// Totals of all threads of a process, those that have ended included (/proc/PID/io). ESRCH, ENOENT: it has ended.
[[nodiscard]] Result<IoCounters> process_io(const std::string& proc_root, pid_t tgid);

namespace parse {
// The text of the file. EPROTO: not as documented.
[[nodiscard]] Result<IoCounters> io_counters(std::string_view text);
}  // namespace parse

}  // namespace swapd::sys
