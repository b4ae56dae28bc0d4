// The descriptors of processes, remembered for a moment: a scan for holders looks at every descriptor of many
// processes.
//
// close, dup, fork and SCM_RIGHTS are not trapped, so nothing here is believed without a look: a match is checked by
// identity when it is used, and a table that turns out wrong is read again.
#pragma once

#include <functional>
#include <vector>

#include "base/lately_used.h"
#include "base/time.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

class FdCache {
 public:
  FdCache(const sys::Procfs& procfs, const Clock& clock) : procfs_(procfs), clock_(clock) {}

  struct Entry {
    int fd = -1;
    sys::FdIdentity identity;
  };
  using Match = std::function<bool(const sys::FdIdentity&)>;

  // The open descriptors of the process that match now, found in a table not older than max_age.
  [[nodiscard]] std::vector<Entry> find(pid_t pid, Duration max_age, const Match& match);
  [[nodiscard]] std::size_t size() const { return tables_.size(); }

 private:
  static constexpr std::size_t max_tables = 8192;
  static constexpr Duration kept_for = std::chrono::seconds(5);  // more than any max_age that is asked for
  static constexpr std::size_t max_fds = 65536;
  struct Table {
    Time time;
    std::vector<Entry> entries;
  };
  // Reads the table anew; null: the process is gone.
  const Table* read(pid_t pid);

  const sys::Procfs& procfs_;
  const Clock& clock_;
  LatelyUsed<pid_t, Table> tables_{kept_for, max_tables};
};

}  // namespace swapd::observe
