// Installs a seccomp filter in a process that runs already, and takes its listener (docs/design.md, Safety; seccomp(2),
// TSYNC and NEW_LISTENER).
#pragma once

#include <linux/filter.h>

#include <memory>
#include <span>

#include "base/fd.h"
#include "base/result.h"
#include "sys/seccomp/stopped_process.h"

namespace swapd::sys {

struct AttachOptions {
  unsigned long flags = 0;          // filter_flags()
  bool allow_no_new_privs = false;  // set it where the process lacks the privilege to do without
  Duration within{};                // for its threads to stop
};

// A process that stands still, with the filter in: from its next trapped call on it needs a process that answers at the
// listener.
class AttachedFilter {
 public:
  // All its threads get the filter at once. EBUSY: the process is traced, or has a listener already. EACCES: it lacks
  // CAP_SYS_ADMIN and no_new_privs. ESRCH with the process alive: its threads have different filters. ENOEXEC: other
  // architecture. ETIMEDOUT: a thread does not stop. Nothing has changed then.
  [[nodiscard]] static Result<AttachedFilter> install(pid_t pid, std::span<const sock_filter> program,
                                                      const AttachOptions& options);
  AttachedFilter(const AttachedFilter&) = delete;
  AttachedFilter& operator=(const AttachedFilter&) = delete;
  AttachedFilter(AttachedFilter&&) = default;
  AttachedFilter& operator=(AttachedFilter&&) = default;
  ~AttachedFilter();

  [[nodiscard]] int listener() const { return listener_.get(); }
  [[nodiscard]] std::size_t threads() const { return process_->threads(); }
  // Closes the listener there, and lets every thread go on where it was. Gives the listener.
  Fd resume();

 private:
  explicit AttachedFilter(std::unique_ptr<StoppedProcess> process) : process_(std::move(process)) {}
  [[nodiscard]] Result<long> call(long nr, const std::array<std::uint64_t, 6>& args, const char* what);
  [[nodiscard]] Status map(std::span<const sock_filter> program);
  [[nodiscard]] Status install(const AttachOptions& options);

  std::unique_ptr<StoppedProcess> process_;
  std::uint64_t memory_ = 0;  // in the process, while it stands still
  std::uint64_t size_ = 0;
  int number_ = -1;  // of the listener, there
  Fd listener_;
};

}  // namespace swapd::sys
