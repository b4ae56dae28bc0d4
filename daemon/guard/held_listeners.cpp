#include "guard/held_listeners.h"

#include <algorithm>
#include <atomic>

namespace swapd::daemon {

std::uint64_t HeldListener::last_known() const {
  const std::uint64_t open = slot->open_id.load(std::memory_order_acquire);
  return std::max({open, slot->last_id.load(std::memory_order_acquire), highest});
}

HeldListener& HeldListeners::add(int fd, std::size_t slot, pid_t launch) {
  fd_of_.at(slot) = fd;
  HeldListener& held = held_[fd];
  held = {};
  held.slot = &slots_[slot];
  held.launch = launch;
  return held;
}

bool HeldListeners::remove(int fd) {
  const auto held = held_.find(fd);
  if (held == held_.end()) return false;
  fd_of_.at(slot_of(held->second)) = -1;
  held_.erase(held);
  return true;
}

HeldListener* HeldListeners::find(int fd) {
  const auto held = held_.find(fd);
  return held == held_.end() ? nullptr : &held->second;
}

const HeldListener* HeldListeners::find(int fd) const {
  const auto held = held_.find(fd);
  return held == held_.end() ? nullptr : &held->second;
}

HeldListener* HeldListeners::of(const DelayedCall& call) {
  const std::uint32_t slot = call.slot.load(std::memory_order_relaxed);
  return has_slot(slot) ? find(fd_of_[slot]) : nullptr;
}

std::vector<int> HeldListeners::fds() const {
  std::vector<int> out;
  for (const auto& [fd, held] : held_) out.push_back(fd);
  return out;
}

}  // namespace swapd::daemon
