#include "enroll/own_listeners.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace swapd::daemon {
namespace {
constexpr std::size_t max_lines = 5;
constexpr std::uint64_t max_logged = 1000;  // a program may try again and again
constexpr std::size_t longest_name = 64;
}  // namespace

std::string name_for_line(std::string name) {
  if (name.size() > longest_name) name.resize(longest_name);
  std::ranges::replace_if(
      name, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return name;
}

void OwnListeners::runs_without(pid_t pid, const std::string& name, const std::string& class_name, bool managed) {
  const std::string what = managed ? "the limits of class '" + class_name + "' do not hold for it"
                                   : "the seccomp observer does not see it, and it is not managed";
  tell("process " + std::to_string(pid) + " (" + name_for_line(name) +
       ") has a seccomp listener of its own and runs without swapd's filter: " + what);
}

void OwnListeners::fails(pid_t tid) {
  tell("process " + std::to_string(procfs_.tgid(tid).value_or(tid)) + " (" +
       name_for_line(procfs_.comm(tid).value_or("")) +
       ") asks for a seccomp listener of its own, which fails under swapd's filter (EBUSY): start it with `swapctl run "
       "--no-filter`");
}

void OwnListeners::tell(std::string line) {
  const std::lock_guard lock(mutex_);
  if (!last_.empty() && last_.back() == line) return;
  if (++total_ <= max_logged) spdlog::warn("{}", line);
  last_.push_back(std::move(line));
  if (last_.size() > max_lines) last_.pop_front();
}

std::vector<std::string> OwnListeners::lines() const {
  const std::lock_guard lock(mutex_);
  return {last_.begin(), last_.end()};
}

}  // namespace swapd::daemon
