// Processes that a rule of [match.NAME] took in, and that no command has touched since. Any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "policy/policy.h"

namespace swapd::daemon {

class RuleEnrollments {
 public:
  static constexpr std::size_t max_processes = 10'000;

  void add(pid_t pid, std::uint64_t start_time, const policy::NamedRule* rule) {
    const std::lock_guard lock(mutex_);
    if (taken_.size() >= max_processes) taken_.clear();  // those that were in it stay where they are
    taken_[pid] = {start_time, rule};
  }
  // A command has spoken of the process.
  void by_hand(pid_t pid) {
    const std::lock_guard lock(mutex_);
    taken_.erase(pid);
  }
  // Null: a command has put the process where it is, or its parent's enrolment.
  [[nodiscard]] const policy::NamedRule* rule_of(pid_t pid, std::uint64_t start_time) const {
    const std::lock_guard lock(mutex_);
    const auto taken = taken_.find(pid);
    return taken == taken_.end() || taken->second.start_time != start_time ? nullptr : taken->second.rule;
  }

 private:
  struct Taken {
    std::uint64_t start_time = 0;
    const policy::NamedRule* rule = nullptr;
  };
  mutable std::mutex mutex_;
  std::unordered_map<pid_t, Taken> taken_;
};

}  // namespace swapd::daemon
